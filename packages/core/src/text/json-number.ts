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

/**
 * A decimal as `digits × 10^exponent`, without zeros at either end: the same for all spellings of a number. Ignores the
 * sign.
 */
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
export function jsonbNumberLength(value: number): number {
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
