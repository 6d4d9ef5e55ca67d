import { API_KEY_PATTERN } from '@callplane/core';

const REDACTED = '[redacted]';

/** Fields whose value is never logged, whatever it is. */
const SECRET_FIELD =
  /^(authorization|cookie|password|passphrase|secret|token|credential|apikey|api_key|signingsecret|privatekey|metadata|body)$/i;

/** Secrets that are recognised by their form wherever they stand in a text. */
const SECRET_FORMS: readonly (readonly [RegExp, string])[] = [
  [API_KEY_PATTERN, 'rtc_[redacted]'],
  // JSON Web Tokens: header and payload both begin with base64url of `{"`.
  [/eyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]+/g, 'jwt_[redacted]'],
  [/whsec_[A-Za-z0-9+/=_-]{8,}/g, 'whsec_[redacted]'],
  // The password of a URL's user.
  [/(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*):[^\s/@]+@/gi, '$1:[redacted]@'],
  [/\bBearer\s+[\w.~+/-]+=*/gi, 'Bearer [redacted]'],
];

/** One of these stands in every text that has a secret form; most lines have none and skip the rest. */
const MARKS = ['rtc_', 'eyJ', 'whsec_', '://', 'earer ', 'EARER '];

/** The text without the secrets that it holds. */
export function redactText(text: string): string {
  if (!MARKS.some((mark) => text.includes(mark))) return text;
  let redacted = text;
  for (const [form, replacement] of SECRET_FORMS) redacted = redacted.replace(form, replacement);
  return redacted;
}

const secretFields = new Map<string, boolean>();

/** Whether these fields are plain values under harmless names: they can be written without looking at each again. */
export function isPlain(fields: Record<string, unknown>): boolean {
  for (const key in fields) {
    if (typeof fields[key] === 'object' && fields[key] !== null) return false;
    let secret = secretFields.get(key);
    if (secret === undefined) {
      secret = SECRET_FIELD.test(key);
      // Names of fields are constants of the code; the bound is for those that are not.
      if (secretFields.size < 1000) secretFields.set(key, secret);
    }
    if (secret || typeof fields[key] === 'bigint') return false;
  }
  return true;
}

/** A `JSON.stringify` replacer that hides secret fields, and writes errors with their causes. */
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
