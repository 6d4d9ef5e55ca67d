import type { ErrorDetail } from './errors.js';

/** Maximum number of details of one error. A hostile request could cause one for each of its bytes. */
export const ERROR_DETAILS_MAX = 20;
export const ERROR_PATH_CHARACTERS_MAX = 200;
const ERROR_MESSAGE_CHARACTERS_MAX = 400;
/** Maximum size of one error as sent, envelope included. */
export const ERROR_BODY_BYTES_MAX = 16 * 1024;
/** Reserved for the rest of an error: code, message and request id, whose characters take up to six bytes each. */
const ENVELOPE_BYTES_MAX = 4 * 1024;

/**
 * Cuts the details to the bounds above: their number, their lengths and their total size. Every error response of the
 * API and every error frame of the gateway uses this function.
 */
export function boundDetails(details: readonly ErrorDetail[]): ErrorDetail[] {
  const bounded: ErrorDetail[] = [];
  let bytes = 0;
  for (const { path, message } of details.slice(0, ERROR_DETAILS_MAX)) {
    const detail = {
      path: cutText(path, ERROR_PATH_CHARACTERS_MAX),
      message: cutText(message, ERROR_MESSAGE_CHARACTERS_MAX),
    };
    // Control characters and lone surrogates take six bytes each in JSON, so a limit on characters is not enough.
    bytes += Buffer.byteLength(JSON.stringify(detail)) + 1;
    if (bytes > ERROR_BODY_BYTES_MAX - ENVELOPE_BYTES_MAX) break;
    bounded.push(detail);
  }
  return bounded;
}

/** Cuts the message of an error to its bound. */
export function boundMessage(message: string): string {
  return cutText(message, ERROR_MESSAGE_CHARACTERS_MAX);
}

/**
 * Cuts a text to at most `charactersMax` UTF-16 units. A cut text ends in an ellipsis, and no surrogate pair is split.
 */
export function cutText(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  const end = charactersMax - 1;
  const last = text.charCodeAt(end - 1);
  return `${text.slice(0, last >= 0xd800 && last <= 0xdbff ? end - 1 : end)}…`;
}

/** The keys and indexes of a JSON pointer, the form in which Ajv reports the location of a value: `/permissions/0`. */
export function pointerSegments(pointer: string): (string | number)[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((segment) => (/^\d+$/.test(segment) ? Number(segment) : segment));
}

/**
 * Formats the keys and indexes that lead to a value as a path, such as `body.tracks[0].layer`. The path never grows
 * beyond {@link ERROR_PATH_CHARACTERS_MAX}, because a key may be as long as the body.
 */
export function formatPath(root: string, segments: readonly (string | number)[]): string {
  let path = root;
  for (const segment of segments) {
    if (path.length > ERROR_PATH_CHARACTERS_MAX) break;
    const text = typeof segment === 'number' ? `[${segment}]` : segment.slice(0, ERROR_PATH_CHARACTERS_MAX + 1);
    path += typeof segment === 'number' || path === '' ? text : `.${text}`;
  }
  return cutText(path, ERROR_PATH_CHARACTERS_MAX);
}
