import { REQUEST_ID_PATTERN } from '@callplane/core';
import type { Route } from '../http/route.js';

/** Every response header that a caller can use, keyed by its component name. */
const HEADERS = {
  RequestId: {
    name: 'x-request-id',
    required: true,
    description: 'Identifies the request in logs. The server keeps a well-formed `x-request-id` of the request.',
    schema: { type: 'string', pattern: REQUEST_ID_PATTERN.source },
  },
  RetryAfter: {
    name: 'retry-after',
    required: true,
    description: 'Seconds to wait before sending the request again.',
    schema: { type: 'integer', minimum: 1 },
  },
  WwwAuthenticate: {
    name: 'www-authenticate',
    required: true,
    description: 'The authentication scheme.',
    schema: { type: 'string', const: 'Bearer' },
  },
  Allow: {
    name: 'allow',
    required: true,
    description: 'The methods that the path accepts.',
    schema: { type: 'string' },
  },
  IdempotencyReplayed: {
    name: 'idempotency-replayed',
    required: false,
    description: 'Present if the server repeats the first response for the same `Idempotency-Key`.',
    schema: { type: 'string', const: 'true' },
  },
  PreferenceApplied: {
    name: 'preference-applied',
    required: false,
    description: 'The preference that the server applied (RFC 7240).',
    schema: { type: 'string' },
  },
  RateLimit: {
    name: 'ratelimit',
    required: false,
    description:
      'Requests left in the rate limit, and seconds until the limit is full again ' +
      '(draft-ietf-httpapi-ratelimit-headers-10). Absent if no limit is configured.',
    schema: { type: 'string' },
  },
  RateLimitPolicy: {
    name: 'ratelimit-policy',
    required: false,
    description: 'The rate limit: requests (`q`) per window in seconds (`w`).',
    schema: { type: 'string' },
  },
  SetCookie: {
    name: 'set-cookie',
    required: true,
    description: 'The cookie of the console session: `HttpOnly`, `SameSite=Strict`, over https also `Secure`.',
    schema: { type: 'string' },
  },
  JwksCacheControl: {
    name: 'cache-control',
    required: true,
    description: 'How long a verifier may cache the keys.',
    schema: { type: 'string' },
  },
} as const;

export type HeaderName = keyof typeof HEADERS;

export const RATE_LIMIT_HEADERS: readonly HeaderName[] = ['RateLimit', 'RateLimitPolicy'];

/** The `components.headers` object. */
export const HEADER_COMPONENTS = Object.fromEntries(
  Object.entries(HEADERS).map(([component, { name: _name, ...header }]) => [component, header]),
);

/** References to these headers, for one response. */
export function headers(names: readonly HeaderName[]): Record<string, { $ref: string }> {
  return Object.fromEntries(
    names.map((component) => [HEADERS[component].name, { $ref: `#/components/headers/${component}` }]),
  );
}

/** The headers of an answer of this route with this status. */
export function headersOf(route: Route, status: number): HeaderName[] {
  const isLimited = route.rateLimited !== false && status !== 401;
  const isSuccess = status < 300;
  return [
    ...errorHeaders(status),
    ...(isSuccess && route.idempotent === true ? (['IdempotencyReplayed'] as const) : []),
    ...(isSuccess && route.prefers === true ? (['PreferenceApplied'] as const) : []),
    ...(isSuccess && route.setsCookie === true ? (['SetCookie'] as const) : []),
    ...(isLimited ? RATE_LIMIT_HEADERS : []),
  ];
}

/** The headers of every answer with this status, whatever the route. */
export function errorHeaders(status: number): HeaderName[] {
  return [
    'RequestId',
    ...(status === 401 ? (['WwwAuthenticate'] as const) : []),
    ...(status === 405 ? (['Allow'] as const) : []),
    ...(status === 429 || status === 503 ? (['RetryAfter'] as const) : []),
  ];
}
