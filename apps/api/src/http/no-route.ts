import { cutText, ERROR_TABLE, escapeSteering, nearestOf, type PublicError } from '@callplane/core';
import type { Request } from 'express';
import type { Route } from './route.js';

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
export function noRouteMessages(routes: readonly Pick<Route, 'method' | 'path'>[]) {
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
