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

/** The text without the secrets that it holds. */
export function redactText(text: string): string {
  let redacted = text;
  for (const [form, replacement] of SECRET_FORMS) redacted = redacted.replace(form, replacement);
  return redacted;
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
