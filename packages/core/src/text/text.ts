const WHITE_SPACE = /^\p{White_Space}$/u;

/** The text without leading and trailing Unicode white space (property White_Space). Linear in its length. */
export function trimUnicode(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && WHITE_SPACE.test(text.charAt(start))) start++;
  while (end > start && WHITE_SPACE.test(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

/** Length in Unicode code points, which is what PostgreSQL's char_length counts too. */
export function codePointLength(text: string): number {
  let length = 0;
  for (const _ of text) length++;
  return length;
}

/** Why PostgreSQL cannot hold this text, or null. */
export function unstorableReason(text: string): string | null {
  if (text.includes('\u0000')) return 'must not contain U+0000';
  if (!text.isWellFormed()) return 'must not contain a lone surrogate';
  return null;
}
