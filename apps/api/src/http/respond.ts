import type { Response } from 'express';
import { contextOf } from './request-context.js';
import type { Reply } from './route.js';
import type { UnreadAnswers } from './unread-answers.js';

/** From this size on, an answer leaves V8's heap, which is smaller than the memory of the process. In characters. */
const LARGE_CHARACTERS = 64 * 1024;

/**
 * Sends an answer with one `writeHead` call: the headers of the context, the headers of the reply, and the body.
 * Express's `response.json` sets headers one by one and computes an ETag that no client uses, which costs more than the
 * rest of a request.
 */
export function respond(response: Response, reply: Reply): void {
  send(response, reply.status, reply.body === undefined ? null : JSON.stringify(reply.body), reply.headers);
}

/**
 * Sends the answer to a caller whose environment must not leave too many bytes unread. An answer that changes nothing is
 * refused if it has no room; that of a change is always sent.
 * @throws PublicError RATE_LIMITED
 */
export function respondWithin(unread: UnreadAnswers, environmentId: string, response: Response, reply: Reply): void {
  const json = reply.body === undefined ? null : JSON.stringify(reply.body);
  const body = json !== null && json.length >= LARGE_CHARACTERS ? Buffer.from(json) : json;
  const bytes = body === null ? 0 : Buffer.byteLength(body);
  if (response.req.method === 'GET') unread.requireRoom(environmentId, bytes);
  send(response, reply.status, body, reply.headers);
  unread.add(environmentId, bytes, response);
}

/**
 * Sends a serialised JSON text, or an empty answer.
 * @param json a text that many callers get is a buffer: Node copies a string for each caller that does not read it.
 */
export function send(
  response: Response,
  status: number,
  json: string | Buffer | null,
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
