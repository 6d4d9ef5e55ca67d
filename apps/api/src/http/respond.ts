import type { Response } from 'express';
import { contextOf } from './request-context.js';
import type { Reply } from './route.js';

/**
 * Sends an answer: the context's headers, the reply's and its body, in one `writeHead`. (Setting the headers one by one,
 * as Express does, costs more than the rest of a request together with its ETag that nobody asks for.)
 */
export function respond(response: Response, reply: Reply): void {
  send(response, reply.status, reply.body === undefined ? null : JSON.stringify(reply.body), reply.headers);
}

/** Sends a text that is JSON already, or nothing. */
export function send(
  response: Response,
  status: number,
  json: string | null,
  headers: Readonly<Record<string, string>> = {},
): void {
  const head: Record<string, string | number> = Object.assign(contextOf(response).headers, headers);
  if (json !== null) {
    head['content-type'] = 'application/json; charset=utf-8';
    head['content-length'] = Buffer.byteLength(json);
  } else if (status !== 204) {
    head['content-length'] = 0;
  }
  response.writeHead(status, head);
  response.end(json ?? undefined);
}
