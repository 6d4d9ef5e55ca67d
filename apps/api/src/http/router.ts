import { mayUse, PublicError, type ErrorDetail } from '@callplane/core';
import { Router, type NextFunction, type Request, type Response } from 'express';
import { readJsonBody } from './body.js';
import { readIdempotencyKey } from './idempotency.js';
import { parsePrefer } from './prefer.js';
import { contextOf } from './request-context.js';
import { respond } from './respond.js';
import type { Route } from './route.js';
import { PartValidator, refuseFailures } from './validate.js';

/**
 * Express router of these routes. The order of judgement for each: 404 or 405 for the route, 403, 415, 413, 400, and
 * then what the handler finds (404 for the resource, 409). Authentication and rate limits stand before the router.
 * @param prefix of the paths that is mounted outside, e.g. `/v1`.
 */
export function createRouter(routes: readonly Route[], prefix: string): Router {
  const router = Router({ caseSensitive: true });
  for (const path of new Set(routes.map((route) => route.path))) {
    const ofPath = routes.filter((route) => route.path === path);
    const pattern = path.slice(prefix.length).replace(/\{(\w+)\}/g, ':$1') || '/';
    const layer = router.route(pattern);
    for (const route of ofPath) layer[route.method](serve(route));
    const allow = ofPath
      .flatMap(({ method }) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]))
      .join(', ');
    layer.all(() => {
      throw new PublicError('METHOD_NOT_ALLOWED', { headers: { allow } });
    });
  }
  router.use(() => {
    throw new PublicError('ROUTE_NOT_FOUND');
  });
  return router;
}

/** One route's way from a matched request to its answer. */
function serve(route: Route) {
  const params = route.params && new PartValidator('path', route.params);
  const query = route.query && new PartValidator('query', route.query);
  const body = route.body && new PartValidator('body', route.body);

  return async (request: Request, response: Response, _next: NextFunction): Promise<void> => {
    const context = contextOf(response);
    context.route = route.path;
    const { caller } = context;
    if (caller === null) throw new Error(`${route.path} stands behind no authentication`);
    if (route.scope !== null && !mayUse(caller, route.scope)) throw new PublicError('INSUFFICIENT_SCOPE');

    const details: ErrorDetail[] = [];
    const parsed = body === undefined ? undefined : await readJsonBody(request);
    const queryValues = query?.readQuery(request.query);
    const idempotencyKey = route.idempotent === true ? readIdempotencyKey(request, details) : null;
    if (params !== undefined) details.push(...params.failures(request.params));
    if (query !== undefined) details.push(...query.failures(queryValues));
    if (body !== undefined && parsed !== undefined)
      details.push(...parsed.details, ...bodyFailures(body, parsed.value));
    if (route.judge !== undefined) {
      details.push(
        ...route.judge({ caller, query: queryValues ?? {}, body: isObject(parsed?.value) ? parsed.value : {} }),
      );
    }
    refuseFailures(details);

    const { traceparent } = context;
    const reply = await route.handle({
      caller: traceparent === null ? caller : { ...caller, traceparent },
      params: request.params,
      query: queryValues,
      body: parsed?.value,
      preference: parsePrefer(request.headers['prefer']?.toString()),
      startedAtMs: context.startedAtMs,
      idempotencyKey,
      log: (fields) => Object.assign(context.logFields, fields),
    });
    respond(response, reply);
  };
}

function bodyFailures(validator: PartValidator, value: unknown): ErrorDetail[] {
  return isObject(value) ? validator.failures(value) : [{ path: 'body', message: 'must be a JSON object' }];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
