import type { Response } from 'express';
import { contextOf } from './request-context.js';
import type { Reply } from './route.js';

/**
 * Sends an answer with one `writeHead` call: the headers of the context, the headers of the reply, and the body.
 * Express's `response.json` sets headers one by one and computes an ETag that no client uses, which costs more than the
 * rest of a request.
 */
export function respond(response: Response, reply: Reply): void {
  send(response, reply.status, reply.body === undefined ? null : JSON.stringify(reply.body), reply.headers);
}

/** Sends a serialised JSON text, or an empty answer. */
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
