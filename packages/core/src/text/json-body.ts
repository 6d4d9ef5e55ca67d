import { ERROR_DETAILS_MAX, formatPath } from '../errors/details.js';
import type { ErrorDetail } from '../errors/errors.js';
import { inexactReason } from './json-number.js';
import { unstorableReason } from './text.js';

/** Maximum nesting of objects and arrays, including the body itself. */
export const JSON_NESTING_MAX = 32;

export type JsonBody =
  | { ok: true; value: unknown; details: ErrorDetail[] }
  /** The text is not JSON. */
  | { ok: false };

/**
 * Parses a request body and lists contents that are valid JSON and cannot be stored: numbers that a double cannot hold,
 * duplicate keys of an object, text that PostgreSQL cannot hold, and nesting deeper than {@link JSON_NESTING_MAX}.
 * `__proto__` is a key like any other.
 * @returns at most {@link ERROR_DETAILS_MAX} details; the scan stops when it has found them.
 */
export function parseJsonBody(text: string): JsonBody {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false };
  }
  return { ok: true, value, details: new JsonScan(text).run() };
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET_OPEN = 0x5b;
const BACKSLASH = 0x5c;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const MINUS = 0x2d;
const NUMBER = /-?\d[\d.eE+-]*/y;

/** An object or an array that contains the current position of the scan. */
interface Container {
  isObject: boolean;
  /** The key or the index of the value at the current position. */
  at: string | number;
  /** The keys of an object so far; null before the first one. */
  keys: Set<string> | null;
}

/**
 * Scans a text that is known to be JSON in one pass. The parsed value does not show what JSON.parse lost: the last of
 * two equal keys wins, and numbers are rounded. The text bounds the memory: a path is built only for a reported
 * failure.
 */
class JsonScan {
  readonly #text: string;
  /** Whether every string of the text is written as it is and can be stored. */
  readonly #isPlain: boolean;
  readonly #details: ErrorDetail[] = [];
  readonly #containers: Container[] = [];
  /** Number of open containers beyond the maximum nesting. */
  #tooDeep = 0;
  #isKey = false;
  #index = 0;

  constructor(text: string) {
    this.#text = text;
    this.#isPlain = !text.includes('\\') && text.isWellFormed();
  }

  run(): ErrorDetail[] {
    const text = this.#text;
    while (this.#index < text.length && this.#details.length < ERROR_DETAILS_MAX) {
      const code = text.charCodeAt(this.#index);
      if (code === QUOTE && this.#isPlain) this.#plainString();
      else if (code === QUOTE) this.#string();
      else if (code === BRACE_OPEN || code === BRACKET_OPEN) this.#open(code === BRACE_OPEN);
      else if (code === BRACE_CLOSE || code === BRACKET_CLOSE) this.#close();
      else if (code === COMMA) this.#next();
      else if (code === MINUS || (code >= 0x30 && code <= 0x39)) this.#number();
      else {
        if (code === COLON) this.#isKey = false;
        this.#index++;
      }
    }
    return this.#details;
  }

  #report(message: string, container = this.#containers.length): void {
    const segments = this.#containers.slice(0, container).map(({ at }) => at);
    this.#details.push({ path: formatPath('body', segments), message });
  }

  #open(isObject: boolean): void {
    this.#index++;
    if (this.#tooDeep > 0 || this.#containers.length >= JSON_NESTING_MAX) {
      if (this.#tooDeep === 0) this.#report(`must not be nested deeper than ${JSON_NESTING_MAX} levels`);
      this.#tooDeep++;
      return;
    }
    this.#containers.push({ isObject, at: isObject ? '' : 0, keys: null });
    this.#isKey = isObject;
  }

  #close(): void {
    this.#index++;
    if (this.#tooDeep > 0) this.#tooDeep--;
    else this.#containers.pop();
    this.#isKey = false;
  }

  #next(): void {
    this.#index++;
    const container = this.#containers.at(-1);
    if (this.#tooDeep > 0 || container === undefined) return;
    if (container.isObject) this.#isKey = true;
    else container.at = (container.at as number) + 1;
  }

  #number(): void {
    NUMBER.lastIndex = this.#index;
    const [literal = ''] = NUMBER.exec(this.#text) ?? [];
    this.#index += literal.length;
    if (this.#tooDeep > 0) return;
    const reason = inexactReason(literal);
    if (reason !== null) this.#report(reason);
  }

  /** JSON contains U+0000 only as an escape, so strings of a plain text need no check. */
  #plainString(): void {
    const start = this.#index + 1;
    const end = this.#text.indexOf('"', start);
    this.#index = end + 1;
    if (this.#isKey && this.#tooDeep === 0) this.#key(this.#text.slice(start, end), null);
  }

  #string(): void {
    const text = this.#text;
    const start = this.#index;
    let end = start + 1;
    let isEscaped = false;
    for (let code = text.charCodeAt(end); code !== QUOTE; code = text.charCodeAt(end)) {
      if (code === BACKSLASH) {
        isEscaped = true;
        end++;
      }
      end++;
    }
    this.#index = end + 1;
    if (this.#tooDeep > 0) return;
    const value = isEscaped ? (JSON.parse(text.slice(start, end + 1)) as string) : text.slice(start + 1, end);
    const reason = unstorableReason(value);
    if (this.#isKey) this.#key(value, reason);
    else if (reason !== null) this.#report(reason);
  }

  /** @param reason why PostgreSQL cannot store the key; null if it can */
  #key(value: string, reason: string | null): void {
    const container = this.#containers.at(-1);
    if (container === undefined) return;
    container.at = value;
    if (reason !== null) this.#report(`has a key that ${reason}`, this.#containers.length - 1);
    container.keys ??= new Set();
    if (container.keys.has(value)) this.#report('is given twice in the same object');
    container.keys.add(value);
  }
}
