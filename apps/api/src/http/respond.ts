import { existsSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { dirname, join, relative } from 'node:path';
import { PublicError, rateLimited } from '@callplane/core';
import { KeyedBound } from '@callplane/runtime';
import express, { type RequestHandler, type Response } from 'express';
import helmet from 'helmet';
import { contextOf } from './request-context.js';
import type { Reply } from './route.js';

/** Bytes of answers that the callers of one environment may leave unread. The largest answer has about 4 MiB. */
const UNREAD_BYTES_PER_ENVIRONMENT_MAX = 32 * 1024 * 1024;
/** Bytes of unread answers from which on an environment gets no more than its share of them. */
const UNREAD_BYTES_SHARED = 64 * 1024 * 1024;
const UNREAD_BYTES_MAX = 128 * 1024 * 1024;

/**
 * Counts the answers of this process that wait in its memory, because their callers do not read them. Without a bound,
 * one caller that sends requests for lists and reads nothing ends the process within seconds, at a rate of requests
 * that its limit allows.
 */
export class UnreadAnswers {
  readonly #unread = new KeyedBound({
    max: UNREAD_BYTES_MAX,
    perKeyMax: UNREAD_BYTES_PER_ENVIRONMENT_MAX,
    sharedFrom: UNREAD_BYTES_SHARED,
  });

  /** @throws PublicError RATE_LIMITED if the environment has no room for another answer of this size. */
  requireRoom(environmentId: string, bytes: number): void {
    if (this.#unread.allows(environmentId, bytes)) return;
    throw rateLimited('Too many answers have not been read. Read them first, or see Retry-After.');
  }

  /** Counts an answer that has ended, unless the operating system has taken all of it. */
  add(environmentId: string, bytes: number, response: ServerResponse): void {
    if (response.writableLength === 0 || response.closed) return;
    this.#unread.add(environmentId, bytes);
    response.once('close', () => this.#unread.add(environmentId, -bytes));
  }
}

/** Refuses requests of environments without room for another answer, before any work: changes must not happen then. */
export function refuseUnread(unread: UnreadAnswers): RequestHandler {
  return (_request, response, next) => {
    const { caller } = contextOf(response);
    if (caller !== null) unread.requireRoom(caller.environmentId, 1);
    next();
  };
}

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
 * Sends the answer to a caller whose environment must not leave too many bytes unread. An answer without a change is
 * refused if it has no room; the answer to a change is always sent.
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
  const head: Record<string, string | number> = { ...contextOf(response).headers, ...headers };
  if (json !== null) head['content-type'] = 'application/json; charset=utf-8';
  if (status !== 204) head['content-length'] = json === null ? 0 : Buffer.byteLength(json);
  response.writeHead(status, head);
  response.end(json ?? undefined);
}

/**
 * Headers of helmet that protect JSON as well: nothing may load, frame or guess the type of an answer. The others are
 * for pages with links, scripts and windows. Node checks and writes each header of each answer, which takes about a
 * microsecond for three of them.
 */
const FOR_JSON = [
  'content-security-policy',
  'cross-origin-resource-policy',
  'strict-transport-security',
  'x-content-type-options',
];

/** The security headers of all answers except pages. */
export function securityHeaders(): Record<string, string> {
  const headers = pageSecurityHeaders();
  return Object.fromEntries(Object.entries(headers).filter(([name]) => FOR_JSON.includes(name)));
}

/**
 * Computes helmet's headers once at startup: they do not depend on the request, and `respond.ts` writes the head of
 * each answer in one call. The content security policy allows nothing; `docs.routes.ts` replaces it for
 * the pages of the API.
 */
export function pageSecurityHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  const response = {
    setHeader: (name: string, value: string) => (headers[name.toLowerCase()] = value),
    removeHeader: () => undefined,
  };
  const apply = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  });
  apply({} as unknown as IncomingMessage, response as unknown as ServerResponse, (error?: unknown) => {
    if (error !== undefined) throw error as Error;
  });
  return headers;
}

/**
 * Serves the files of a folder from disk, and answers 404 for all others.
 * @param headers of the pages and their files.
 */
export function pageFiles(
  folder: string,
  headers: () => Record<string, string>,
  options: { extensions?: string[] } = {},
): RequestHandler {
  const files = express.static(folder, {
    ...options,
    cacheControl: false,
    redirect: false,
    setHeaders(response: Response, path: string) {
      response.set({ ...contextOf(response).headers, ...headers(), 'cache-control': cacheControlOf(folder, path) });
    },
  });
  return (request, response, next) => {
    void files(request, response, (error?: unknown) => next(error ?? new PublicError('ROUTE_NOT_FOUND')));
  };
}

/** The folder of the first of these files in any folder above this module; null if none exists. */
export function folderAbove(...files: readonly string[]): string | null {
  for (let above = import.meta.dirname; ; above = dirname(above)) {
    const found = files.map((file) => join(above, file)).find((path) => existsSync(path));
    if (found !== undefined) return dirname(found);
    if (above === dirname(above)) return null;
  }
}

/** Names in `assets` contain a hash of their content. */
function cacheControlOf(folder: string, path: string): string {
  if (path.endsWith('.html')) return 'no-store';
  return relative(folder, path).startsWith('assets') ? 'public, max-age=31536000, immutable' : 'no-cache';
}
