/**
 * The header `traceparent` of W3C Trace Context, level 1: the trace that a request belongs to. Logs of everything that
 * the request causes (an operation, an event and its deliveries) carry the same trace, and receivers of webhooks get it
 * as a header.
 * Source: https://www.w3.org/TR/trace-context-1/#traceparent-header.
 */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(-.*)?$/;

/** Parses the header into its form of version 00; null when it is missing or malformed. */
export function parseTraceparent(header: string | string[] | undefined): string | null {
  if (typeof header !== 'string' || header.length > 512) return null;
  const [whole, , , more] = TRACEPARENT.exec(header.trim()) ?? [];
  if (whole === undefined) return null;
  // Version 00 has no fields after its flags; later versions may have some.
  if (whole.startsWith('00') && more !== undefined) return null;
  return `00${whole.slice(2, 55)}`;
}

export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35);
}

/**
 * The header for the next hop: the same trace and flags, with this step as the parent.
 * @param spanId 16 hexadecimal digits, not all zero.
 */
export function nextTraceparent(traceparent: string, spanId: string): string {
  return `${traceparent.slice(0, 36)}${spanId}${traceparent.slice(52)}`;
}
