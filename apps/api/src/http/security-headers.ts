import type { IncomingMessage, ServerResponse } from 'node:http';
import helmet from 'helmet';

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
