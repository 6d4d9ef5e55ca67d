import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';

export const SCOPES = [
  'rooms:create',
  'rooms:read',
  'rooms:update',
  'rooms:end',
  'tokens:create',
  'participants:read',
  'participants:update',
  'participants:remove',
  'recordings:read',
  'recordings:write',
  'webhooks:read',
  'webhooks:write',
] as const;

export type Scope = (typeof SCOPES)[number];

export const API_KEY_TYPES = ['secret', 'publishable'] as const;

export type ApiKeyType = (typeof API_KEY_TYPES)[number];

/** Every repository function that a request can reach takes it, right after its database handle. */
export interface Tenant {
  readonly projectId: string;
  readonly environmentId: string;
  /** W3C Trace Context of the request, if it sent one; the events and operations of the request carry it. */
  readonly traceparent?: string | null;
}

/** Where a console session comes from: an API key, or a one-time link of `rtc console login`. */
export const CONSOLE_SESSION_SOURCES = ['api_key', 'link'] as const;
type ConsoleSessionSource = (typeof CONSOLE_SESSION_SOURCES)[number];

export interface ConsoleSession {
  readonly id: string;
  readonly source: ConsoleSessionSource;
  readonly readOnly: boolean;
  readonly projectName: string;
  readonly environmentName: string;
  readonly createdAt: Date;
  readonly endsAt: Date;
}

export interface Caller extends Tenant {
  readonly keyId: string;
  readonly keyType: ApiKeyType;
  readonly scopes: readonly Scope[];
  /** Present if the caller sent the cookie of a console session. `keyId` is then its key, or of a link the session. */
  readonly session?: ConsoleSession;
  /** Present if the caller sent the code of a link: its hash. Only the sign-in accepts it. */
  readonly loginCodeHash?: Uint8Array;
}

/** A publishable key grants no scope, so it may only use routes that need none. */
export function mayUse(caller: Pick<Caller, 'keyType' | 'scopes'>, scope: Scope): boolean {
  return caller.keyType === 'secret' && caller.scopes.includes(scope);
}

/**
 * Why a caller may not use a route that needs one of these scopes, for people.
 * @param scopes none if the route needs a secret key, and no scope of it.
 */
export function scopeFailure(
  { keyType, session }: Pick<Caller, 'keyType' | 'session'>,
  scopes: readonly Scope[],
): string {
  if (keyType === 'publishable') {
    const needed = scopes.length === 0 ? '' : ` with the scope ${scopes.join(' or ')}`;
    return `The API key is publishable and grants no scope. Use a secret key (${KEY_PREFIX.secret}…)${needed}.`;
  }
  const holder = session === undefined ? 'API key' : session.readOnly ? 'read-only console session' : 'console session';
  return `The ${holder} lacks the scope ${scopes.join(' or ')}.`;
}

const KEY_PREFIX = { secret: 'rtc_sk_', publishable: 'rtc_pk_' } as const satisfies Record<ApiKeyType, string>;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 62^43 > 2^256: enough for 32 random bytes. */
const RANDOM_LENGTH = 43;
/** 62^6 > 2^32: enough for a CRC-32. */
const CHECKSUM_LENGTH = 6;

export const API_KEY_RANDOM_BYTES = 32;

/** Finds whole keys and secrets of the console anywhere in a text, for secret scanners and for the redaction of logs. */
export const API_KEY_PATTERN = /rtc_(?:[sp]k|c[sl])_[0-9A-Za-z]{20,}/g;

/** Prefix, 256 random bits in base 62, and the CRC-32 of both, which rejects a typo without a look-up. */
export function formatApiKey(type: ApiKeyType, randomBytes: Uint8Array): string {
  return formatChecked(KEY_PREFIX[type], randomBytes);
}

function formatChecked(prefix: string, randomBytes: Uint8Array): string {
  if (randomBytes.length !== API_KEY_RANDOM_BYTES) throw new RangeError('an API key needs 32 random bytes');
  const head = prefix + base62(BigInt(`0x${Buffer.from(randomBytes).toString('hex')}`));
  return head + checksum(head);
}

/** The type of a well-formed key; null for any other text, including a key with a wrong checksum. */
export function parseApiKey(text: string): ApiKeyType | null {
  const type = text.startsWith(KEY_PREFIX.secret)
    ? 'secret'
    : text.startsWith(KEY_PREFIX.publishable)
      ? 'publishable'
      : null;
  return type !== null && isChecked(KEY_PREFIX[type], text) ? type : null;
}

function isChecked(prefix: string, text: string): boolean {
  if (!text.startsWith(prefix) || text.length !== prefix.length + RANDOM_LENGTH + CHECKSUM_LENGTH) return false;
  return checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH);
}

/**
 * Why a text is no well-formed API key, as the end of a sentence; null for a well-formed key. Never quotes the text,
 * which may be a whole key with one wrong character.
 */
export function keyProblem(text: string): string | null {
  const prefix = [...Object.values(KEY_PREFIX), CODE_PREFIX].find((each) => text.startsWith(each));
  if (prefix === undefined) return `it begins neither with ${KEY_PREFIX.secret} nor with ${KEY_PREFIX.publishable}`;
  if (isChecked(prefix, text)) {
    return prefix === CODE_PREFIX
      ? 'it is the code of a login link, which only the sign-in to the console takes'
      : null;
  }
  const [length, expected] = [text.length - prefix.length, RANDOM_LENGTH + CHECKSUM_LENGTH];
  if (length === expected) return 'its checksum does not match: a character is wrong or missing';
  return `it has ${length} characters after ${prefix} instead of ${expected}`;
}

/** SHA-256 of the whole key; the key itself is not stored. A key is random, so a slow hash would add nothing. */
export function hashApiKey(key: string): Buffer {
  return Buffer.from(hashApiKeyHex(key), 'hex');
}

export function hashApiKeyHex(key: string): string {
  return hash('sha256', key);
}

export function apiKeyHint(key: string): string {
  return key.slice(-4);
}

/** Without BigInt, because every request has its key checked. */
function checksum(head: string): string {
  let digits = '';
  for (let rest = crc32(head); digits.length < CHECKSUM_LENGTH; rest = Math.floor(rest / 62))
    digits = BASE62.charAt(rest % 62) + digits;
  return digits;
}

function base62(value: bigint): string {
  let digits = '';
  for (let rest = value; rest > 0n; rest /= 62n) digits = BASE62.charAt(Number(rest % 62n)) + digits;
  return digits.padStart(RANDOM_LENGTH, '0');
}

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

export function formatLoginCode(randomBytes: Uint8Array): string {
  return formatChecked(CODE_PREFIX, randomBytes);
}

export function isLoginCode(text: string): boolean {
  return isChecked(CODE_PREFIX, text);
}

export function readScopes(scopes: readonly Scope[]): Scope[] {
  return scopes.filter((scope) => scope.endsWith(':read'));
}
