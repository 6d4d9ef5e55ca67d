/** Finds idioms that docs/style.md forbids, without I/O. */
import { proseIn } from './comments.js';

/** A line of prose, with its number in the file. */
export interface Line {
  line: number;
  text: string;
}
export interface Finding {
  line: number;
  idiom: string;
  excerpt: string;
}

/**
 * Phrases that stand for a noun, so that the reader has to guess it. They were frequent in this repository and have no
 * ordinary use in technical English.
 */
export const IDIOMS = [
  /\bwhoever\b/gi,
  /\b(?:nobody|somebody)\b/gi,
  /\bof ours\b/gi,
  /\b(?:tells?|told|hears?|heard) of\b/gi,
  /\b(?:is|are) asked\b/gi,
  // "so long as" and "so many … that" are ordinary.
  /\bso (?:many|often|long)\b(?! as\b)(?!(?: \S+){0,4} that\b)/gi,
  /\bwhat (?:becomes? of|became of|comes? of|came of|of)\b/gi,
  /\b(?:comes?|came) about\b/gi,
  /\b(?:is|are) to be\b/gi,
  /\b(?:as it were|as well as (?:it|they) can|for company|in that order|such a one)\b/gi,
];

/** The characters around the text of a comment's line. */
const COMMENT_MARK = /^\s*(?:\/\*+|\*(?!\/)|\/\/+|#+|--)|\*\/$/gm;
/** Characters of the text around a finding. */
const EXCERPT_CHARACTERS_MAX = 100;

/**
 * The comments and messages of a source file or the text of a Markdown file, in paragraphs. Leaves out code in backticks
 * and single words in double quotes, which are names.
 * @param file the name decides the syntax
 */
export function paragraphsOf(file: string, text: string): Line[][] {
  if (file.endsWith('.md')) return paragraphsIn(text.replaceAll(/^( *)(```|~~~)[^]*?^\1\2/gm, blank));
  const ranges = proseIn(file, text);
  if (ranges === null) return [];
  let prose = '';
  let end = 0;
  for (const [start, next] of ranges) {
    prose += blank(text.slice(end, start)) + text.slice(start, next).replaceAll(COMMENT_MARK, blank);
    end = next;
  }
  return paragraphsIn(prose + blank(text.slice(end)));
}

const blank = (text: string) => text.replaceAll(/[^\n]/g, ' ');

function paragraphsIn(prose: string): Line[][] {
  const paragraphs: Line[][] = [[]];
  for (const [index, line] of prose
    .replaceAll(/`[^`\n]*`|"\w+"/g, blank)
    .split('\n')
    .entries()) {
    const text = line.trim();
    // An empty line ends a paragraph; a list item, a table row, a heading and a tag begin one.
    if (/^(?:$|[-*|#@]|\d+\.)/.test(text)) paragraphs.push([]);
    paragraphs.at(-1)?.push({ line: index + 1, text });
  }
  return paragraphs;
}

/** @returns by line */
export function findIdioms(paragraphs: readonly (readonly Line[])[]): Finding[] {
  return paragraphs.flatMap((lines) => {
    // An idiom may continue on the next line.
    const text = lines.map((line) => line.text).join(' ');
    return IDIOMS.flatMap((pattern) => [...text.matchAll(pattern)])
      .sort((one, other) => one.index - other.index)
      .map(({ index, 0: idiom }) => ({ line: lineAt(lines, index), idiom, excerpt: excerptAt(text, index) }));
  });
}

/** @param offset in the joined lines */
function lineAt(lines: readonly Line[], offset: number) {
  let end = 0;
  for (const { line, text } of lines) {
    end += text.length + 1;
    if (offset < end) return line;
  }
  return 0;
}

function excerptAt(text: string, offset: number) {
  const start = Math.max(0, offset - EXCERPT_CHARACTERS_MAX / 2);
  return text.slice(start, start + EXCERPT_CHARACTERS_MAX).trim();
}
