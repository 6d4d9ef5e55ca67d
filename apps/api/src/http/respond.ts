import type { Response } from 'express';
import type { Reply } from './route.js';

/** Sends a reply as it is; Express's own `json` would compute an ETag that nobody asks for. */
export function respond(response: Response, reply: Reply): void {
  response.statusCode = reply.status;
  for (const [name, value] of Object.entries(reply.headers ?? {})) response.setHeader(name, value);
  if (reply.body === undefined) {
    response.end();
    return;
  }
  sendJson(response, JSON.stringify(reply.body));
}

/** Sends a text that is JSON already. */
export function sendJson(response: Response, text: string): void {
  response.setHeader('content-type', 'application/json; charset=utf-8');
  response.end(text);
}
