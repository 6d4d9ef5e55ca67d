/** Property White_Space, and the byte order mark, which is invisible and which editors leave at the start of files. */
const WHITE_SPACE = /^[\p{White_Space}\ufeff]$/u;
/**
 * A visible character: no control, format, surrogate, separator or combining character, and none that is displayed as
 * nothing (Default_Ignorable_Code_Point: fillers and variation selectors). The blank Braille pattern and the null
 * notehead are symbols in Unicode, but blank.
 */
const VISIBLE = /[^\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{M}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}]/u;

export function trimUnicode(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && WHITE_SPACE.test(text.charAt(start))) start++;
  while (end > start && WHITE_SPACE.test(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

/** A name as stored: trimmed, and empty when it has no visible character. */
export function trimName(text: string): string {
  const trimmed = trimUnicode(text);
  return VISIBLE.test(trimmed) ? trimmed : '';
}

export function codePointLength(text: string): number {
  let length = 0;
  for (const _ of text) length++;
  return length;
}

/** Why PostgreSQL cannot store this text; null if it can. */
export function unstorableReason(text: string): string | null {
  if (text.includes('\u0000')) return 'must not contain U+0000';
  if (!text.isWellFormed()) return 'must not contain a lone surrogate';
  return null;
}

/** Control characters other than the tab and the line breaks of a text with several lines. Most fonts show them as boxes. */
const CONTROL = /[^\P{Cc}\t\n\r]/u;

/** Why a text that people read is refused; null if it is not. U+0000 is left to {@link unstorableReason}. */
export function controlReason(text: string): string | null {
  const code = text.charCodeAt(text.search(CONTROL));
  // NaN without a match.
  if (!(code > 0)) return null;
  const hex = code.toString(16).toUpperCase().padStart(4, '0');
  return `must not contain the control character U+${hex}`;
}

/**
 * Control characters, separators of lines and marks that change the direction of text. They would steer a terminal, or
 * show a name other than it is.
 */
const STEERING = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Escapes characters that would steer a terminal, line breaks too. The escapes of JSON keep its meaning. */
export function escapeSteering(text: string): string {
  return text.replace(STEERING, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Words that are longer are compared with none: the comparison takes time by the product of both lengths. */
const COMPARED_MAX = 40;

/**
 * The candidate that a mistyped word probably stands for; undefined if none is near. Case, `_` and `-` make no
 * difference; otherwise one edit for each four characters is accepted, and at least one.
 */
export function nearestOf(word: string, candidates: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let least = Infinity;
  for (const candidate of word.length > COMPARED_MAX ? [] : candidates) {
    const [a, b] = [plain(word), plain(candidate)];
    const editsMax = Math.max(1, Math.floor(b.length / 4));
    if (b.length < 2 || Math.abs(a.length - b.length) > editsMax) continue;
    const edits = editsBetween(a, b);
    if (edits <= editsMax && edits < least) [nearest, least] = [candidate, edits];
  }
  return nearest;
}

const plain = (word: string): string => word.toLowerCase().replace(/[_-]/g, '');

/** Optimal string alignment distance: insertions, deletions, substitutions, and swaps of two neighbours. */
function editsBetween(a: string, b: string): number {
  let [beforeLast, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current.push(
        Math.min(
          (last[column] ?? 0) + 1,
          (current[column - 1] ?? 0) + 1,
          (last[column - 1] ?? 0) + (isSame ? 0 : 1),
          isSwap ? (beforeLast[column - 2] ?? 0) + 1 : Infinity,
        ),
      );
    }
    [beforeLast, last] = [last, current];
  }
  return last[b.length] ?? 0;
}

/**
 * Parses an absolute URL by the WHATWG rules; null for any other text.
 *
 * Replaces `URL.canParse`, which is wrong in Node 20: once V8 has compiled a function that calls it often, it returns
 * false for every URL with a character outside ASCII.
 */
export function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** The text without percent-encoding; null if an escape in it is not valid UTF-8. */
export function unescaped(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
