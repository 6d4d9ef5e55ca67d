import type { Request } from 'express';
import type { Route } from './route.js';

export function isRead({ method }: Pick<Request, 'method'>): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Whether a request is for one of some routes. */
export type MatchesRoute = (request: Pick<Request, 'method' | 'baseUrl' | 'path'>) => boolean;

/** Finds the routes with `rateLimited: false`. */
export function unlimitedRequests(routes: readonly Route[]): MatchesRoute {
  return requestsOf(routes.filter(({ rateLimited }) => rateLimited === false));
}

/** Finds the routes with `acceptsLoginCode`. */
export function signInRequests(routes: readonly Route[]): MatchesRoute {
  return requestsOf(routes.filter(({ acceptsLoginCode }) => acceptsLoginCode === true));
}

/**
 * Authentication and rate limits apply before a route is matched, so paths are compared as text.
 * @throws Error if a route has a parameter in its path.
 */
function requestsOf(routes: readonly Route[]): MatchesRoute {
  const known = new Set<string>();
  for (const { method, path } of routes) {
    if (path.includes('{')) throw new Error(`${path} cannot be compared as text: its path has a parameter`);
    known.add(`${method} ${path}`);
  }
  return (request) => {
    const method = isRead(request) ? 'get' : request.method.toLowerCase();
    return known.has(`${method} ${request.baseUrl}${request.path}`);
  };
}
