import { PublicError, type ErrorDetail } from '@callplane/core';
import type { Request, Response } from 'express';
import { Type } from 'typebox';
import { UNAUTHENTICATED } from './authenticate.js';
import { requireScope } from './authorize.js';
import { PartValidator, readJsonBody, refuseFailures, type ParsedBody } from './validate.js';
import { cursorsOf, type ListCursors, type PageCursor } from './cursor.js';
import { contextOf, withoutSlash } from './request-context.js';
import { respond, respondWithin, type UnreadAnswers } from './respond.js';
import type { Preference, Route } from './route.js';
import { withIdProblems } from './wrong-ids.js';

/**
 * Serves the route of a request. Each request is checked in a fixed order: 404 or 405 for the route, 403, 415, 413, 400,
 * and then the errors of the handler (404 for the resource, 409). Authentication and rate limits come before.
 */
export function serveRoutes(routes: readonly Route[], unread: UnreadAnswers) {
  const places = [...new Set(routes.map(({ path }) => path))].map((path) => {
    const byMethod = new Map<string, ReturnType<typeof serve>>();
    for (const route of routes.filter((each) => each.path === path)) {
      const answer = serve(route, unread);
      byMethod.set(route.method.toUpperCase(), answer);
      if (route.method === 'get') byMethod.set('HEAD', answer);
    }
    // A slash at the end is ignored.
    const pattern = withoutSlash(path).replace(/\{(\w+)\}/g, '(?<$1>[^/]+)');
    return { pattern: new RegExp(`^${pattern}/?$`), byMethod, allow: [...byMethod.keys()].join(', ') };
  });
  return (request: Request, response: Response): Promise<void> => {
    const { method, path } = request;
    for (const { pattern, byMethod, allow } of places) {
      const match = pattern.exec(path);
      if (match === null) continue;
      const answer = byMethod.get(method);
      if (answer === undefined) throw new PublicError('METHOD_NOT_ALLOWED', { headers: { allow } });
      const params: Record<string, string> = {};
      for (const name in match.groups) params[name] = decodeURIComponent(match.groups[name] ?? '');
      return answer(request, response, params);
    }
    throw new PublicError('ROUTE_NOT_FOUND');
  };
}

function serve(route: Route, unread: UnreadAnswers) {
  const path = route.params && new PartValidator('path', route.params);
  const query = new PartValidator('query', route.query ?? NO_FIELDS);
  const body = new PartValidator('body', route.body ?? NO_FIELDS);
  const cursors = route.list && cursorsOf(route.list);

  return async (request: Request, response: Response, params: Record<string, string>): Promise<void> => {
    const context = contextOf(response);
    context.route = route.path;
    const { caller } = context;
    if (caller === null) throw new Error(`${route.path} was served without authentication`);
    if (route.scope !== null) requireScope(caller, route.scope);

    const details: ErrorDetail[] = [];
    const parsed = route.ignoresBody === true ? NO_BODY : await readJsonBody(request);
    if (route.bodyOptional === true) parsed.value ??= {};
    const queryValues = readQuery(query, route, request, details);
    const idempotencyKey = route.idempotent === true ? readIdempotencyKey(request, details) : null;
    if (path !== undefined) details.push(...path.failures(params));
    if (route.query !== undefined) details.push(...query.failures(queryValues));
    const { environmentId } = caller;
    const cursor =
      cursors === undefined
        ? NO_CURSOR
        : readCursor(cursors, { environmentId, path: params, query: queryValues }, details);
    details.push(...parsed.details);
    // Copy the body before the validator trims it in place. Skip a body that already has failures: it will be rejected,
    // and it may be nested too deep to copy.
    const isCompared = idempotencyKey !== null && parsed.details.length === 0;
    const bodyAsSent = isCompared ? structuredClone(parsed.value) : undefined;
    if (route.body !== undefined || parsed.value !== undefined) details.push(...bodyFailures(body, parsed.value));
    if (route.validate !== undefined) {
      details.push(...route.validate({ caller, query: queryValues, body: isObject(parsed.value) ? parsed.value : {} }));
    }
    refuseFailures(details);

    const { traceparent } = context;
    const handled = route.handle({
      caller: traceparent === null ? caller : { ...caller, traceparent },
      params,
      query: queryValues,
      body: parsed.value,
      bodyAsSent,
      cursor,
      preference: parsePrefer(request.headers['prefer']?.toString()),
      startedAtMs: context.startedAtMs,
      // Read by few routes, and found anew at each access.
      isSecure: () => request.secure,
      origin: () => `${request.protocol}://${request.host}`,
      lastEventId: request.headers['last-event-id']?.toString() ?? null,
      idempotencyKey,
      log: (fields) => Object.assign(context.logFields, fields),
      recheckKey: async () => {
        if (!(await context.isKeyValid())) throw new PublicError('UNAUTHENTICATED', UNAUTHENTICATED);
      },
      // A flood of unknown keys, which fills the batches, must not keep the stream of a revoked key open.
      isKeyValid: () => context.isKeyValid({ inBatch: 'if_room' }),
      onClosed: (listener) => {
        if (response.closed) listener();
        else response.once('close', listener);
      },
      waited: (ms) => void (context.waitedMs += ms),
    });
    const reply = await handled.catch((error: unknown) => {
      throw withIdProblems(error, { path: params, query: queryValues, body: parsed.value });
    });
    if (reply.stream !== undefined) reply.stream(response, Object.assign(context.headers, reply.headers));
    else if (route.rateLimited === false) respond(response, reply);
    else respondWithin(unread, caller.environmentId, response, reply);
  };
}

/** Most requests have no query, and need not parse it. */
function readQuery(
  validator: PartValidator,
  route: Route,
  request: Request,
  details: ErrorDetail[],
): Record<string, unknown> {
  if (route.ignoresBody === true || !request.url.includes('?')) return {};
  return validator.readQuery(request.query, details);
}

/** For routes without a query, or without a body: an empty object carries no data and is accepted. */
const NO_FIELDS = Type.Object({}, { additionalProperties: false });
const NO_BODY: ParsedBody = { value: undefined, details: [] };
/** For routes without a list. Their handlers never use the cursor. */
const NO_CURSOR: PageCursor = {
  position: null,
  encode: () => {
    throw new Error('the route has no list');
  },
};

/** Reads the cursor from the query and checks that it belongs to the same filters. Adds a failure to `details`. */
function readCursor(
  { list, read }: ListCursors,
  request: { environmentId: string; path: Record<string, unknown>; query: Record<string, unknown> },
  details: ErrorDetail[],
): PageCursor {
  const { environmentId, path, query } = request;
  const { [list.parameter]: given, limit: _, projectId: _p, environmentId: _e, ...others } = query;
  const filters = Object.fromEntries(Object.entries(others).filter(([name]) => !list.unbound.includes(name)));
  const cursor = read({ environmentId, path, filters }, typeof given === 'string' ? given : undefined);
  if (cursor === null) details.push({ path: `query.${list.parameter}`, message: list.refusal });
  return cursor ?? NO_CURSOR;
}

/** Reads the `Idempotency-Key` of a request: 1 to 255 printable ASCII characters. Adds failures to `details`. */
function readIdempotencyKey(request: Request, details: ErrorDetail[]): string | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key === 'string' && /^[\x20-\x7e]{1,255}$/.test(key)) return key;
  details.push({ path: 'headers.idempotency-key', message: 'must be 1 to 255 printable ASCII characters' });
  return null;
}

const WAIT_SECONDS_MAX = 10;
const NONE: Preference = { waitMs: null, applied: null };

/**
 * Parses `Prefer: wait=N` (whole seconds, capped at 10) and `Prefer: respond-async`, which means no wait unless `wait`
 * is given too. Ignores every other preference, as RFC 7240 requires.
 */
export function parsePrefer(header: string | undefined): Preference {
  if (header === undefined) return NONE;
  const preferences = header.split(',').map((part) => (part.split(';')[0] ?? '').trim().toLowerCase());
  const wait = preferences
    .map((preference) => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(preference)?.[1])
    .find((n) => n !== undefined);
  if (wait !== undefined) {
    const seconds = Math.min(Number(wait), WAIT_SECONDS_MAX);
    return { waitMs: seconds * 1000, applied: `wait=${seconds}` };
  }
  return preferences.includes('respond-async') ? { waitMs: 0, applied: 'respond-async' } : NONE;
}

function bodyFailures(validator: PartValidator, value: unknown): ErrorDetail[] {
  return isObject(value) ? validator.failures(value) : [{ path: 'body', message: 'must be a JSON object' }];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
