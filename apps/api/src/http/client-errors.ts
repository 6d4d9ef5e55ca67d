import { ERROR_TABLE, newId, type ErrorCode } from '@callplane/core';
import type { Logger } from '@callplane/runtime';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { errorBody } from './errors.js';

/** Requests that Node's HTTP parser refuses never reach Express; they get the same error shape here. */
export function answerClientErrors(server: Server, logger: Logger): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const requestId = newId('request');
    const { status, code, message } = refusal(error.code);
    const body = JSON.stringify(errorBody(code, requestId, message));
    logger.info('request', { requestId, status, errorCode: code, parserCode: error.code });
    socket.end(
      `HTTP/1.1 ${status} ${code}\r\ncontent-type: application/json; charset=utf-8\r\n` +
        `content-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${requestId}\r\nconnection: close\r\n\r\n${body}`,
    );
  });
  // An unknown expectation is not a reason to refuse a request (Node would answer 417 in a shape of its own).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}

function refusal(parserCode: string | undefined): { status: number; code: ErrorCode; message: string } {
  switch (parserCode) {
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, code: 'VALIDATION_FAILED', message: 'The request headers are too large.' };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, code: 'REQUEST_TIMEOUT', message: ERROR_TABLE.REQUEST_TIMEOUT.message };
    default:
      return { status: 400, code: 'VALIDATION_FAILED', message: 'The request is not well-formed HTTP.' };
  }
}
