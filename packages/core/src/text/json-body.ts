import type { ErrorDetail } from '../errors/errors.js';
import { unstorableReason } from './text.js';

/** Containers that may stand inside one another, the body itself included. */
export const JSON_NESTING_MAX = 32;

export type JsonBody =
  | { ok: true; value: unknown; details: ErrorDetail[] }
  /** The text is not JSON. */
  | { ok: false };

/**
 * Parses a request body and lists what JSON can say and we cannot keep: numbers that a double cannot hold, text that
 * PostgreSQL cannot hold, and nesting deeper than {@link JSON_NESTING_MAX}. `__proto__` is a key like any other.
 */
export function parseJsonBody(text: string): JsonBody {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false };
  }
  const details: ErrorDetail[] = [];
  const inexact = inexactNumbers(text);
  collect(value, 'body', 0, details);
  // Where in the document an inexact number stands is known only for those that overflow (they parse to Infinity).
  for (const literal of inexact) {
    details.push({ path: 'body', message: `the number ${literal} cannot be held exactly; send it as a string` });
  }
  return { ok: true, value, details };
}

function collect(value: unknown, path: string, depth: number, details: ErrorDetail[]): void {
  if (typeof value === 'string') {
    const reason = unstorableReason(value);
    if (reason !== null) details.push({ path, message: reason });
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) details.push({ path, message: 'is a number too large for a double' });
  } else if (typeof value === 'object' && value !== null) {
    if (depth >= JSON_NESTING_MAX) {
      details.push({ path, message: `must not be nested deeper than ${JSON_NESTING_MAX} levels` });
      return;
    }
    if (Array.isArray(value)) {
      value.forEach((item, index) => collect(item, `${path}[${index}]`, depth + 1, details));
      return;
    }
    for (const [key, item] of Object.entries(value)) {
      const reason = unstorableReason(key);
      if (reason === null) collect(item, `${path}.${key}`, depth + 1, details);
      else details.push({ path, message: `has a key that ${reason}` });
    }
  }
}

/** Whether a text may hold such a number at all: bodies that don't (nearly all) skip the scan. */
const MAYBE_INEXACT = /\d{16}|\d[eE]-/;
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(\.\d+)?([eE][+-]?\d+)?/g;

/**
 * Number literals of a JSON text that would come back as another number: integers beyond 2^53 that are no double, and
 * numbers that vanish to zero. A fraction with more digits than a double keeps reads as the same double everywhere.
 */
function inexactNumbers(text: string): string[] {
  if (!MAYBE_INEXACT.test(text)) return [];
  const found: string[] = [];
  for (const [literal, fraction, exponent] of text.matchAll(STRING_OR_NUMBER)) {
    if (literal.startsWith('"')) continue;
    const value = Number(literal);
    if (!Number.isFinite(value)) continue;
    const vanishes = value === 0 && /[1-9]/.test(literal.replace(/[eE].*/, ''));
    const changes = fraction === undefined && exponent === undefined && !isShortestForm(literal, value);
    if (vanishes || changes) found.push(literal.length > 40 ? `${literal.slice(0, 40)}…` : literal);
  }
  return found;
}

/** Whether an integer literal is what this double is written as (12345678901234567000 is, …001 is not). */
function isShortestForm(literal: string, value: number): boolean {
  if (Number.isSafeInteger(value)) return true;
  const [mantissa = '', exponent] = String(value).split('e+');
  if (exponent === undefined) return mantissa === literal;
  const [whole = '', fraction = ''] = mantissa.split('.');
  return whole + fraction.padEnd(Number(exponent), '0') === literal;
}
