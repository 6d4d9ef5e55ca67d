import type { ErrorDetail } from '@callplane/core';
import { Router, type RequestHandler } from 'express';
import { Type } from 'typebox';
import { requireScope } from './authenticate.js';
import { cursorsOf, type PageCursor } from './cursor.js';
import { onlyMethods } from './errors.js';
import { readIdempotencyKey } from './idempotency.js';
import { withIdProblems } from './id-fields.js';
import { contextOf } from './request-context.js';
import { respondWithin, type UnreadAnswers } from './respond.js';
import type { Route } from './route.js';
import { PartValidator, readJsonBody, refuseFailures } from './validate.js';

/**
 * Makes the Express routes of the table. Each request is checked in a fixed order: 404 or 405 for the route, 403, 415, 413,
 * 400, and then the errors of the handler (404 for the resource, 409). Authentication and rate limits come before.
 */
export function serveRoutes(routes: readonly Route[], unread: UnreadAnswers): Router {
  const router = Router({ caseSensitive: true });
  for (const path of new Set(routes.map((route) => route.path))) {
    const samePath = routes.filter((route) => route.path === path);
    const served = router.route(path.replace(/\{(\w+)\}/g, ':$1'));
    for (const route of samePath) served[route.method](serve(route, unread));
    served.all(onlyMethods(samePath.map(({ method }) => method)));
  }
  return router;
}

function serve(route: Route, unread: UnreadAnswers): RequestHandler<Record<string, string>> {
  const path = route.params && new PartValidator('path', route.params);
  const query = new PartValidator('query', route.query ?? NO_FIELDS);
  const body = new PartValidator('body', route.body ?? NO_FIELDS);
  const cursors = route.list && cursorsOf(route.list);

  return async (request, response) => {
    const { params } = request;
    const context = contextOf(response);
    context.route = route.path;
    const { caller, traceparent } = context;
    if (caller === null) throw new Error(`${route.path} was served without authentication`);
    if (route.scope !== null) requireScope(caller, route.scope);

    const details: ErrorDetail[] = [];
    const parsed = await readJsonBody(request);
    if (route.body !== undefined && Type.IsOptional(route.body)) parsed.value ??= {};
    // Most requests have no query, and need not parse it.
    const queryValues = request.url.includes('?') ? query.readQuery(request.query, details) : {};
    const idempotencyKey = route.idempotent === true ? readIdempotencyKey(request, details) : null;
    if (path !== undefined) details.push(...path.failures(params));
    if (route.query !== undefined) details.push(...query.failures(queryValues));
    const cursor = cursors?.read({ environmentId: caller.environmentId, path: params, query: queryValues }, details);
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

    const handled = route.handle({
      caller: traceparent === null ? caller : { ...caller, traceparent },
      params,
      query: queryValues,
      body: parsed.value,
      bodyAsSent,
      // A handler without a list has no cursor in its type.
      cursor: cursor as PageCursor,
      idempotencyKey,
      response,
    });
    const reply = await handled.catch((error: unknown) => {
      throw withIdProblems(error, { path: params, query: queryValues, body: parsed.value });
    });
    if (reply !== null) respondWithin(unread, caller.environmentId, response, reply);
  };
}

/** For routes without a query, or without a body: an empty object carries no data and is accepted. */
const NO_FIELDS = Type.Object({}, { additionalProperties: false });

function bodyFailures(validator: PartValidator, value: unknown): ErrorDetail[] {
  return isObject(value) ? validator.failures(value) : [{ path: 'body', message: 'must be a JSON object' }];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
