import type { ClientRequest } from 'node:http';
import type { Socket } from 'node:net';

/** Beginning of an answer that is kept until its head is complete: interim heads, and the status line after them. */
const HEAD_KEPT_BYTES = 16_384;

/**
 * Node refuses some heads, such as one with two content lengths, folded lines or more than 16 KiB. The status line before
 * the fault still decides: otherwise a delivery that the receiver has accepted would be sent again. Node closes the
 * connection, so that nothing else is read of it.
 */
export function followStatusLine(request: ClientRequest, onRefused: (statusCode: number) => void): void {
  const chunks: Buffer[] = [];
  let length = 0;
  const keep = (chunk: Buffer): void => {
    if (length < HEAD_KEPT_BYTES) chunks.push(chunk);
    length += chunk.length;
  };
  request.once('socket', (socket: Socket) => {
    // Before the listener of the parser, which reports the fault.
    socket.prependListener('data', keep);
    for (const end of ['response', 'close'] as const) request.once(end, () => socket.off('data', keep));
  });
  request.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code?.startsWith('HPE_') !== true) return;
    const statusCode = statusOf(Buffer.concat(chunks).toString('latin1'));
    if (statusCode !== null) onRefused(statusCode);
  });
}

/** The status of the final answer at the beginning of a text, whose head may be faulty; null without a status line. */
function statusOf(answer: string): number | null {
  for (let rest = answer; ;) {
    const line = /^HTTP\/1\.[01] ([1-9]\d\d)(?: [^\r\n]*)?\r?\n/.exec(rest);
    if (line === null) return null;
    const status = Number(line[1]);
    if (status >= 200) return status;
    const end = /\r?\n\r?\n/.exec(rest);
    if (end === null) return null;
    rest = rest.slice(end.index + end[0].length);
  }
}
