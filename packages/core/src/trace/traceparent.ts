/**
 * The header `traceparent` of W3C Trace Context, level 1: which trace a request belongs to. What a request causes (an
 * operation, an event and its deliveries) is logged under the same trace, and receivers of webhooks are told it.
 * Source: https://www.w3.org/TR/trace-context-1/#traceparent-header.
 */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(-.*)?$/;

/** What is kept of the header, as version 00; null when there is none or it is not well formed, and no trace is known. */
export function parseTraceparent(header: string | string[] | undefined): string | null {
  if (typeof header !== 'string' || header.length > 512) return null;
  const [whole, , , more] = TRACEPARENT.exec(header.trim()) ?? [];
  if (whole === undefined) return null;
  // Version 00 has nothing after its flags; later ones may.
  if (whole.startsWith('00') && more !== undefined) return null;
  return `00${whole.slice(2, 55)}`;
}

/** The id that logs show. @param traceparent as {@link parseTraceparent} gives it. */
export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35);
}

/**
 * The header that goes on: the same trace and flags, with this step as the parent.
 * @param spanId 16 hexadecimal digits, not all zero.
 */
export function nextTraceparent(traceparent: string, spanId: string): string {
  return `${traceparent.slice(0, 36)}${spanId}${traceparent.slice(52)}`;
}
