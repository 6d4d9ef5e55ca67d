import { ERROR_DETAILS_MAX, formatPath, type ErrorDetail } from '../errors/errors.js';

export const ENDPOINT_HEADERS_MAX = 16;
export const ENDPOINT_HEADER_NAME_CHARACTERS_MAX = 64;
export const ENDPOINT_HEADER_VALUE_CHARACTERS_MAX = 2048;
/** Stands for the value of a header in answers and attempts. */
const MASKED_HEADER = '***';

/** RFC 9110: a token, and visible ASCII characters with spaces and tabs between them. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/;

/** Beside the ones that begin with `x-service-`: the worker sets them, or they are of the connection or the framing. */
const RESERVED = new Set<string>([
  ...['webhook-id', 'webhook-timestamp', 'webhook-signature', 'traceparent', 'tracestate', 'user-agent', 'host'],
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'],
  ...['proxy-authenticate', 'proxy-authorization', 'http2-settings', 'content-length', 'content-type'],
  ...['content-encoding', 'content-range', 'accept-encoding'],
]);

/** The failures of headers that a tenant wants on each attempt. */
export function endpointHeaderFailures(path: string, headers: unknown): ErrorDetail[] {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) return [];
  const entries = Object.entries(headers);
  if (entries.length > ENDPOINT_HEADERS_MAX) {
    return [{ path, message: `must have at most ${ENDPOINT_HEADERS_MAX} headers, not ${entries.length}` }];
  }
  const seen = new Set<string>();
  const details: ErrorDetail[] = [];
  for (const [name, value] of entries) {
    const message = nameFailure(name, seen) ?? valueFailure(value);
    seen.add(name.toLowerCase());
    if (message !== null) details.push({ path: formatPath(path, [name]), message });
  }
  return details.slice(0, ERROR_DETAILS_MAX);
}

function nameFailure(name: string, seen: ReadonlySet<string>): string | null {
  if (name.length > ENDPOINT_HEADER_NAME_CHARACTERS_MAX || !NAME.test(name)) {
    return `must have a name of 1 to ${ENDPOINT_HEADER_NAME_CHARACTERS_MAX} characters that RFC 9110 allows`;
  }
  const lower = name.toLowerCase();
  if (RESERVED.has(lower) || lower.startsWith('x-service-'))
    return 'is set by the service, or belongs to the connection or the body';
  return seen.has(lower) ? 'has the same name as another header' : null;
}

function valueFailure(value: unknown): string | null {
  if (typeof value !== 'string') return 'must be a string';
  if (value === MASKED_HEADER) return 'is the mask that reads show; send the value itself';
  if (value.length <= ENDPOINT_HEADER_VALUE_CHARACTERS_MAX && VALUE.test(value)) return null;
  return (
    `must have 1 to ${ENDPOINT_HEADER_VALUE_CHARACTERS_MAX} visible ASCII characters, ` +
    'with spaces and tabs only between them'
  );
}

export function maskedHeaders(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, MASKED_HEADER]));
}

/** The owner of a sealed header ({@link seal}). */
export function headerContext(endpointId: string, name: string): string {
  return `webhook-header:${endpointId}:${name}`;
}

/** The same headers in lower case, with other values. */
export function mapHeaders(
  headers: Readonly<Record<string, string>>,
  valueOf: (value: string, name: string) => string,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), valueOf(value, name.toLowerCase())]),
  );
}
