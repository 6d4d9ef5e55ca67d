import {
  boundDetails,
  boundMessage,
  PublicError,
  cutText,
  ERROR_TABLE,
  escapeSteering,
  nearestOf,
} from '@callplane/core';
import { isDatabaseUnavailable } from '@callplane/db';
import { OverloadedError } from '@callplane/runtime';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { contextOf } from './request-context.js';
import { send } from './respond.js';
import type { Route } from './route.js';

/** `Retry-After` in seconds while PostgreSQL is unavailable. */
const UNAVAILABLE_RETRY_AFTER_SECONDS = 2;
/** `Retry-After` in seconds while too many requests wait for their statements. */
const OVERLOADED_RETRY_AFTER_SECONDS = 1;

/** Converts any thrown value to an error that is safe to send. The cause goes to the log only. */
function toPublicError(error: unknown): PublicError {
  if (error instanceof PublicError) return error;
  if (isDatabaseUnavailable(error)) {
    return new PublicError('UNAVAILABLE', {
      cause: error,
      headers: { 'retry-after': String(UNAVAILABLE_RETRY_AFTER_SECONDS) },
    });
  }
  if (error instanceof OverloadedError) {
    return new PublicError('UNAVAILABLE', {
      message: 'Too many requests wait. Try again shortly.',
      cause: error,
      headers: { 'retry-after': String(OVERLOADED_RETRY_AFTER_SECONDS) },
    });
  }
  return new PublicError('INTERNAL', { cause: error });
}

/** Refuses every request. Express runs it after the handlers of these methods. */
export function onlyMethods(methods: readonly string[]): RequestHandler {
  const allow = methods.flatMap((method) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()])).join(', ');
  return () => {
    throw new PublicError('METHOD_NOT_ALLOWED', { headers: { allow } });
  };
}

/** The last middleware. Answers with the error body, whichever layer threw. */
export function errorHandler(routes: readonly Pick<Route, 'method' | 'path'>[]) {
  const messageOf = noRouteMessages(routes);
  return (thrown: unknown, request: Request, response: Response, _next: NextFunction): void => {
    const context = contextOf(response);
    const publicError = toPublicError(thrown);
    context.errorCode = publicError.code;
    if (publicError.cause !== undefined) context.cause = publicError.cause;
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const { code, status, details, headers } = publicError;
    // Messages and details are cut so that the body has at most 16 KiB.
    const error = {
      code,
      message: boundMessage(messageOf(publicError, request)),
      requestId: context.requestId,
      ...(details === undefined ? {} : { details: boundDetails(details) }),
    };
    send(response, status, JSON.stringify({ error }), headers);
  };
}

const PATH_CHARACTERS_MAX = 200;

interface Known {
  method: string;
  path: string;
  segments: string[];
}

/**
 * Words a 404 for the route and a 405, whichever part of the API throws them: with method and path, and with the nearest
 * route or the methods of the path.
 */
function noRouteMessages(routes: readonly Pick<Route, 'method' | 'path'>[]) {
  const known = routes.map(({ method, path }): Known => {
    return { method: method.toUpperCase(), path, segments: segmentsOf(path) };
  });
  return ({ code, headers, message }: PublicError, { method, originalUrl }: Request): string => {
    if (message !== ERROR_TABLE[code].message) return message;
    const [path = ''] = originalUrl.split('?');
    const shown = escapeSteering(cutText(path, PATH_CHARACTERS_MAX));
    if (code === 'METHOD_NOT_ALLOWED') return `${shown} does not support ${method}. It supports ${headers['allow']}.`;
    if (code !== 'ROUTE_NOT_FOUND') return message;
    const nearest = nearestRoute(known, method, segmentsOf(path));
    return `There is no route ${method} ${shown}. ${nearest ?? 'GET /openapi.json lists all routes.'}`;
  };
}

/** Finds the route of a path without `/v1`, with one prefix or slash too many, an empty value, or mistyped words. */
function nearestRoute(known: readonly Known[], method: string, given: readonly string[]): string | null {
  const variants: readonly [misses: number, segments: readonly string[]][] = [
    [0, given],
    [1, ['v1', ...given]],
    [1, given.slice(1)],
    // An empty value is more likely than a slash too many.
    [1.5, given.filter((segment) => segment !== '')],
  ];
  let nearest: Known | null = null;
  let least = Infinity;
  for (const route of known) {
    for (const [changes, segments] of variants) {
      const misses = changes + missesOf(segments, route) + (route.method === method ? 0 : 0.25);
      if (misses < least) [nearest, least] = [route, misses];
    }
  }
  return nearest === null ? null : `Did you mean ${nearest.method} ${nearest.path}?`;
}

/** How many segments differ; Infinity if the path is for another route. */
function missesOf(given: readonly string[], { segments }: Known): number {
  if (given.length !== segments.length) return Infinity;
  let misses = 0;
  for (const [index, expected] of segments.entries()) {
    const segment = given[index] ?? '';
    const isValue = expected.startsWith('{');
    if (isValue ? segment !== '' : segment === expected) continue;
    if (!isValue && nearestOf(segment, [expected]) === undefined) return Infinity;
    misses += 1;
  }
  return misses;
}

/** Without the slashes at both ends. */
function segmentsOf(path: string): string[] {
  return path.replace(/^\//, '').replace(/\/$/, '').split('/');
}
