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

/**
 * Parses an absolute URL by the WHATWG rules; null when it is none.
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
