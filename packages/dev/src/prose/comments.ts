/**
 * Extracts comments and messages from source files, without I/O. Not a parser: it only knows where strings and comments
 * end.
 */

/** Offsets in a text. */
export type Range = readonly [start: number, end: number];

/**
 * The comments of a source file. In JavaScript and TypeScript also the texts that people read: log and error messages,
 * descriptions, metric helps, and names of tests.
 * @param file the name decides the syntax
 * @returns null if the syntax is unknown
 */
export function proseIn(file: string, text: string): Range[] | null {
  if (/\.([cm]?js|ts|prisma)$/.test(file)) return commentsAndMessages(text);
  if (file.endsWith('.sql')) return matches(/--.*|\/\*[^]*?\*\//g, text);
  // In shell and YAML, `#` begins a comment at the start of a word outside quotes.
  if (/\.(sh|ya?ml|conf|jcfg|toml)$|(^|\/)(Dockerfile|\.env\.example|\.ci\/run)$/.test(file)) {
    return matches(/(?<=^(?:[^'"\n]|'[^'\n]*'|"[^"\n]*")*(?<!\S))#.*/gm, text);
  }
  return null;
}

function matches(pattern: RegExp, text: string): Range[] {
  return [...text.matchAll(pattern)].map(({ index, 0: found }) => [index, index + found.length]);
}

const STRING = /'(?:\\[^]|[^'\\\n])*'?|"(?:\\[^]|[^"\\\n])*"?/y;
const COMMENT = /\/\/.*|\/\*[^]*?(?:\*\/|$)/y;
const REGULAR_EXPRESSION = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\//y;
/** The text of a template up to its end or to the next `${`. */
const TEMPLATE = /(?:\\[^]|\$(?!\{)|[^`\\$])*(?:`|\$\{|$)/y;
/** Code after which a slash begins a regular expression; after other code it divides. */
const BEFORE_EXPRESSION = /(?:^|[(,=:[!&|?{;+\-*%~^<>]|\b(?:return|typeof|case|in|of|throw|yield|await))$/;

/** Code after which a string is a message for people. */
const BEFORE_MESSAGE =
  /(?:\b(?:debug|info|warn|error|description|test|describe)\(|\b(?:description|summary|help|message|title):|\]\)\(|\bnew \w*(?:Error|Failure)\((?:'\w+',)?)\s*$/;

/** Comments and messages of JavaScript and TypeScript, and comments of Prisma. */
function commentsAndMessages(text: string): Range[] {
  const found: Range[] = [];
  /** Depths of braces at which a `}` continues a template. */
  const templates: number[] = [];
  let depth = 0;
  let at = 0;
  const lengthOf = (pattern: RegExp) => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0].length ?? 0;
  };
  const isAfter = (pattern: RegExp) => pattern.test(text.slice(Math.max(0, at - 60), at).trimEnd());
  const skipTemplate = (isMessage = false) => {
    at += 1;
    const length = lengthOf(TEMPLATE);
    if (isMessage) found.push([at, at + length - 1]);
    at += length;
    if (text.startsWith('${', at - 2)) templates.push(depth);
  };
  while (at < text.length) {
    const character = text.charAt(at);
    const comment = character === '/' ? lengthOf(COMMENT) : 0;
    if (comment > 0) {
      found.push([at, at + comment]);
      at += comment;
    } else if (character === '`') {
      skipTemplate(isAfter(BEFORE_MESSAGE));
    } else if (character === '}' && templates.at(-1) === depth) {
      templates.pop();
      skipTemplate();
    } else {
      if (character === '{') depth += 1;
      if (character === '}') depth -= 1;
      const isExpression = character === '/' && isAfter(BEFORE_EXPRESSION);
      const length = lengthOf(isExpression ? REGULAR_EXPRESSION : STRING);
      if (length > 2 && !isExpression && isAfter(BEFORE_MESSAGE)) found.push([at + 1, at + length - 1]);
      at += length || 1;
    }
  }
  return found;
}
