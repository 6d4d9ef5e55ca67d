import { CallplaneError } from './errors.js';

const CHARS_MAX = 8192;
/** Clocks of users' machines are often wrong by hours, and the gateway's clock decides. */
const CLOCK_TOLERANCE_MS = 24 * 3_600_000;

/**
 * Checks what no gateway would accept. Only a gateway can check the rest.
 * @throws CallplaneError `invalid_token`, or `token_expired` for a token that expired more than a day ago.
 */
export function assertToken(token: string, nowMs: number): void {
  if (/^rtc_[sp]k_/.test(token))
    throw invalid('An API key is not a participant token. Request a token from your backend; never ship the key.');
  const claims = token.length <= CHARS_MAX ? claimsOf(token) : undefined;
  if (claims === undefined)
    throw invalid('The token is not a participant token (a JWT). Pass the field `token` of the REST API’s answer.');
  const { exp } = claims;
  if (typeof exp === 'number' && exp * 1000 + CLOCK_TOLERANCE_MS < nowMs)
    throw new CallplaneError('token_expired', 'The token has expired. Request a new one from your backend.');
}

function claimsOf(token: string): Record<string, unknown> | undefined {
  const [, payload] = /^[\w-]+\.([\w-]+)\.[\w-]+$/.exec(token) ?? [];
  if (payload === undefined) return undefined;
  try {
    const claims: unknown = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
    return typeof claims === 'object' && claims !== null ? (claims as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function invalid(message: string): CallplaneError {
  return new CallplaneError('invalid_token', message);
}
