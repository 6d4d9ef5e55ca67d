import type { Request } from 'express';
import type { Route } from './route.js';

export function isRead({ method }: Pick<Request, 'method'>): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Whether a request is for a route without a rate limit. */
export type IsUnlimited = (request: Pick<Request, 'method' | 'baseUrl' | 'path'>) => boolean;

/**
 * Finds the routes with `rateLimited: false`. Rate limits apply before a route is matched, so the paths of these routes
 * are compared as text.
 * @throws Error if such a route has a parameter in its path.
 */
export function unlimitedRequests(routes: readonly Route[]): IsUnlimited {
  const unlimited = new Set<string>();
  for (const { method, path, rateLimited } of routes) {
    if (rateLimited !== false) continue;
    if (path.includes('{')) throw new Error(`${path} needs a rate limit: its path has a parameter`);
    unlimited.add(`${method} ${path}`);
  }
  return (request) => {
    const method = isRead(request) ? 'get' : request.method.toLowerCase();
    return unlimited.has(`${method} ${request.baseUrl}${request.path}`);
  };
}
