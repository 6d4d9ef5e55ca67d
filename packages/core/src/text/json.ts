import { ERROR_DETAILS_MAX, formatPath, type ErrorDetail } from '../errors/errors.js';
import { syntaxProblem } from './json-syntax.js';
import { unstorableReason } from './text.js';

/** Maximum nesting of objects and arrays, including the body itself. */
export const JSON_NESTING_MAX = 32;

/**
 * Parses a request body and lists contents that are valid JSON and cannot be stored: numbers that a double cannot hold,
 * duplicate keys of an object, text that PostgreSQL cannot hold, and nesting deeper than {@link JSON_NESTING_MAX}.
 * `__proto__` is a key like any other.
 * @returns at most {@link ERROR_DETAILS_MAX} details; the scan stops when it has found them. For a text that is no JSON:
 *   where, as the end of a sentence.
 */
export function parseJsonBody(text: string) {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, problem: syntaxProblem(text) } as const;
  }
  return { ok: true, value, details: new JsonScan(text).run() } as const;
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
 * Scans a text that is known to be JSON in one pass. The parsed value hides losses of JSON.parse: the last of
 * two equal keys wins, and numbers are rounded. The text bounds the memory: a path is built only for a reported
 * failure.
 */
class JsonScan {
  /** Whether every string of the text is written as it is and can be stored. */
  readonly #isPlain: boolean;
  readonly #details: ErrorDetail[] = [];
  readonly #containers: Container[] = [];
  #tooDeep = 0;
  #isKey = false;
  #index = 0;

  constructor(private readonly text: string) {
    this.#isPlain = !text.includes('\\') && text.isWellFormed();
  }

  run(): ErrorDetail[] {
    const text = this.text;
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
    const [literal = ''] = NUMBER.exec(this.text) ?? [];
    this.#index += literal.length;
    if (this.#tooDeep > 0) return;
    const reason = inexactReason(literal);
    if (reason !== null) this.#report(reason);
  }

  /** JSON contains U+0000 only as an escape, so strings of a plain text need no check. */
  #plainString(): void {
    const start = this.#index + 1;
    const end = this.text.indexOf('"', start);
    this.#index = end + 1;
    if (this.#isKey && this.#tooDeep === 0) this.#key(this.text.slice(start, end), null);
  }

  #string(): void {
    const text = this.text;
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

/** The smallest double with full precision (53 bits). */
const NORMAL_MIN = 2 ** -1022;

/**
 * Why a number in a JSON text would be read back as another number; null if it would not.
 *
 * Accepts a number that equals the double as JavaScript writes it, in any spelling (`5`, `5.0`, `50e-1`, `1e21`). Also
 * accepts a fraction below 2^53: every reader rounds it in the same way to the nearest double, as 0.1 itself, by one
 * part in 2^53 at most. Rejects a number that overflows, that underflows to zero, or whose whole part no double can
 * hold.
 */
export function inexactReason(literal: string): string | null {
  const value = Number(literal);
  // Fast path for short numbers, which are most numbers: a double of full precision keeps 15 digits.
  if (literal.length <= 15) {
    const magnitude = Math.abs(value);
    if (!/[eE]/.test(literal) || (magnitude >= NORMAL_MIN && magnitude <= Number.MAX_VALUE)) return null;
  }
  // Fast path for numbers in JavaScript's own spelling, which are most of the longer ones.
  if (String(value) === literal) return null;
  if (!Number.isFinite(value)) return 'is a number too large for a double';
  const given = decimalOf(literal);
  const kept = decimalOf(String(value));
  if (given.digits === kept.digits && given.exponent === kept.exponent) return null;
  const magnitude = Math.abs(value);
  const isFraction = given.exponent < 0;
  if (isFraction && magnitude >= NORMAL_MIN && magnitude <= Number.MAX_SAFE_INTEGER) return null;
  const quoted = literal.length > 40 ? `${literal.slice(0, 40)}…` : literal;
  return `the number ${quoted} cannot be stored exactly; send it as a string`;
}

/** `digits × 10^exponent`, without sign and zeros at either end: the same for all spellings of a number. */
function decimalOf(literal: string): { digits: string; exponent: number } {
  const [mantissa = '', exponentText = '0'] = literal.replace(/^-/, '').toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const all = whole + fraction;
  let start = 0;
  let end = all.length;
  // Loops, because a regular expression for trailing zeros takes quadratic time on a long run of zeros.
  while (end > start && all.charCodeAt(end - 1) === ZERO) end--;
  while (start < end && all.charCodeAt(start) === ZERO) start++;
  if (start === end) return { digits: '', exponent: 0 };
  return { digits: all.slice(start, end), exponent: Number(exponentText) - fraction.length + (all.length - end) };
}

const ZERO = 0x30;

/**
 * Number of characters that PostgreSQL writes for a number in jsonb: `1e308` becomes 309 digits. The number is sent to
 * PostgreSQL in JavaScript's spelling.
 */
function jsonbNumberLength(value: number): number {
  const text = JSON.stringify(value);
  const [mantissa = '', exponentText] = text.split('e');
  if (exponentText === undefined) return text.length;
  const exponent = Number(exponentText);
  const sign = mantissa.startsWith('-') ? 1 : 0;
  const [whole = '', fraction = ''] = mantissa.slice(sign).split('.');
  const fractionDigits = Math.max(0, fraction.length - exponent);
  const wholeDigits = Math.max(1, whole.length + exponent);
  return sign + wholeDigits + (fractionDigits === 0 ? 0 : 1 + fractionDigits);
}

/** Maximum number of bytes of one metadata object, as returned by a read. */
export const METADATA_BYTES_MAX = 16 * 1024;

/**
 * The API and the gateway use the same words.
 * @param bytes from {@link storedJsonBytes}
 */
export function metadataSizeFailure(bytes: number): string | null {
  if (bytes <= METADATA_BYTES_MAX) return null;
  return `must be at most ${METADATA_BYTES_MAX} bytes as a read returns it, not ${bytes}`;
}

/**
 * Size of a JSON value as PostgreSQL returns it from jsonb, in bytes, without the spaces that it writes after `,` and
 * `:`. PostgreSQL writes numbers without an exponent: 2,300 × `1e308` take 16 KB in the request and 715 KB in every
 * read.
 * @param value a result of JSON.parse. Values nested deeper than {@link JSON_NESTING_MAX} are rejected elsewhere and do
 * not count.
 */
export function storedJsonBytes(value: unknown, depth = 0): number {
  if (typeof value === 'number') return jsonbNumberLength(value);
  if (typeof value !== 'object' || value === null) return Buffer.byteLength(JSON.stringify(value));
  if (depth >= JSON_NESTING_MAX) return 0;
  let bytes = 1;
  let entries = 0;
  if (Array.isArray(value)) {
    for (const item of value) bytes += storedJsonBytes(item, depth + 1);
    entries = value.length;
  } else {
    for (const [key, item] of Object.entries(value)) {
      bytes += Buffer.byteLength(JSON.stringify(key)) + 1 + storedJsonBytes(item, depth + 1);
      entries++;
    }
  }
  // The brackets, and a comma between every two entries.
  return bytes + Math.max(1, entries);
}

export function sameJson(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Object.is(a, b) || a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [Object.entries(a), new Map(Object.entries(b))];
  return left.length === right.size && left.every(([key, value]) => right.has(key) && sameJson(value, right.get(key)));
}
