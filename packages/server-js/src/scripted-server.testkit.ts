import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Received {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Answers one request. */
export type Answer = (response: ServerResponse, received: Received) => void;

export interface ScriptedServer {
  baseUrl: string;
  received: Received[];
  close: () => Promise<void>;
}

/** An HTTP server that gives these answers in turn, and then repeats the last one. */
export async function scriptedServer(...answers: Answer[]): Promise<ScriptedServer> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const one = { method, url, headers, body: Buffer.concat(chunks).toString() };
      received.push(one);
      answers[Math.min(received.length, answers.length) - 1]?.(response, one);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    received,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

export const failure = (status: number, code: string, headers: Record<string, string> = {}): Answer =>
  json(status, { error: { code, message: `${code}.`, requestId: 'req_1' } }, { 'x-request-id': 'req_1', ...headers });

/** Cuts the connection without an answer. */
export const cut: Answer = (response) => response.destroy();

/** Never answers. */
export const silence: Answer = () => undefined;
