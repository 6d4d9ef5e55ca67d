import { formatChecked, isChecked } from './api-key.js';
import type { Scope } from './scopes.js';

/** How long a session lasts, in seconds. `rtc console login --ttl` chooses within the bounds. */
export const CONSOLE_SESSION_SECONDS = 8 * 3600;
export const CONSOLE_SESSION_SECONDS_MIN = 60;
export const CONSOLE_SESSION_SECONDS_MAX = 24 * 3600;
/** After how long without a request a session ends, in seconds. */
export const CONSOLE_SESSION_IDLE_SECONDS = 3600;
/** How long the code of a link works, in seconds. */
export const CONSOLE_LINK_SECONDS = 600;
/** Open sessions and unused links of an environment. */
export const CONSOLE_SESSIONS_MAX = 100;

const SECRET_PREFIX = 'rtc_cs_';
const CODE_PREFIX = 'rtc_cl_';

/** The secret of a session, the value of its cookie. Stored as `hashApiKey` of it, like an API key. */
export function formatConsoleSecret(randomBytes: Uint8Array): string {
  return formatChecked(SECRET_PREFIX, randomBytes);
}

export function isConsoleSecret(text: string): boolean {
  return isChecked(SECRET_PREFIX, text);
}

/** The single-use code of a link. */
export function formatLoginCode(randomBytes: Uint8Array): string {
  return formatChecked(CODE_PREFIX, randomBytes);
}

export function isLoginCode(text: string): boolean {
  return isChecked(CODE_PREFIX, text);
}

/** The scopes of a session that changes nothing. */
export function readScopes(scopes: readonly Scope[]): Scope[] {
  return scopes.filter((scope) => scope.endsWith(':read'));
}
