import { API_KEY_PATTERN } from '@callplane/core';

const REDACTED = '[redacted]';

/** Names of fields whose values are never logged. */
const SECRET_FIELD =
  /^(authorization|cookie|password|passphrase|secret|token|credential|apikey|api_key|signingsecret|privatekey|metadata|body)$/i;

/** Patterns of secrets that are recognised anywhere in a text. */
const SECRET_FORMS: readonly (readonly [RegExp, string])[] = [
  [API_KEY_PATTERN, 'rtc_[redacted]'],
  // JSON Web Tokens: header and payload both begin with base64url of `{"`.
  [/eyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]+/g, 'jwt_[redacted]'],
  [/whsec_[A-Za-z0-9+/=_-]{8,}/g, 'whsec_[redacted]'],
  // The password in the user part of a URL.
  [/(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*):[^\s/@]+@/gi, '$1:[redacted]@'],
  [/\bBearer\s+[\w.~+/-]+=*/gi, 'Bearer [redacted]'],
];

/** Every text with a secret pattern contains one of these marks. Most lines contain none and skip the patterns. */
const MARKS = ['rtc_', 'eyJ', 'whsec_', '://', 'earer ', 'EARER '];

/** Replaces the secrets in a text. */
export function redactText(text: string): string {
  if (!MARKS.some((mark) => text.includes(mark))) return text;
  let redacted = text;
  for (const [form, replacement] of SECRET_FORMS) redacted = redacted.replace(form, replacement);
  return redacted;
}

const secretFields = new Map<string, boolean>();

/** Whether all fields are plain values under harmless names. Such fields can be written without `redactFields`. */
export function isPlain(fields: Record<string, unknown>): boolean {
  for (const key in fields) {
    if (typeof fields[key] === 'object' && fields[key] !== null) return false;
    let secret = secretFields.get(key);
    if (secret === undefined) {
      secret = SECRET_FIELD.test(key);
      // Field names are usually constants in the code. The bound protects against generated names.
      if (secretFields.size < 1000) secretFields.set(key, secret);
    }
    if (secret || typeof fields[key] === 'bigint') return false;
  }
  return true;
}

/** A `JSON.stringify` replacer that hides secret fields and writes errors with their causes. */
export function redactFields(key: string, value: unknown): unknown {
  if (value === undefined || value === null) return value;
  if (SECRET_FIELD.test(key)) return REDACTED;
  if (value instanceof Error) {
    return {
      name: value.name,
      message: value.message,
      code: (value as { code?: unknown }).code,
      stack: value.stack,
      cause: value.cause,
    };
  }
  return typeof value === 'bigint' ? value.toString() : value;
}
