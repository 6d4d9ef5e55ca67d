/**
 * Idioms that make a reader go back, because their subject is no thing with a name (docs/style.md). `npm run docs:words`
 * refuses more of them than {@link IDIOMS_MAX}.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './files.mjs';

/** The number that was reached. It only falls. */
export const IDIOMS_MAX = 102;

const VERB = String.raw`(?:is|are|was|were|has|have|had|do|does|did|can|could|may|might|must|shall|should|will|would|[a-z]{3,}(?:s|ed))`;
const IDIOMS = [
  new RegExp(String.raw`\bwhat (?:else |really )?(?!(?:this|its|always|others|kinds|needs)\b)${VERB}\b`, 'gi'),
  /\b(?:What|Those)\b(?![^.!?]*\?)/g,
  /\b(?:that|those) of\b/gi,
  /\bthose (?:that|who|whom|whose|which)\b/gi,
  /\bso (?:much|many)\b(?! (?:as|that)\b)/gi,
  /\b(?:go|goes|going|went) on\b(?! (?:and|to)? ?[0-9])/gi,
  /\bfor ever\b/gi,
  /\bwhoever\b/gi,
  /(?<!\bthere )\b(?:is|are) one(?=[.;])/gi,
];
const FILES = /\.(?:ts|tsx|mjs|js|md|sh|sql|prisma|tpl|ya?ml|conf)$/;
const GENERATED = /\.generated\.|^docs\/reference\/|^pnpm-lock\.yaml$|^scripts\/lib\/idioms\.mjs$/;
/** The end of a line of text, with the sign of a comment at the begin of the next one. */
const LINE_BREAK = /[ \t]*\n[ \t]*(?:\/\*\*|\*(?!\/)|\/\/+|#+|--|>|- )?[ \t]*/g;

/**
 * @param {readonly string[]} files paths below the repository
 * @returns {{ file: string, text: string }[]} each idiom with the words around it
 */
export function findIdioms(files) {
  return files
    .filter((file) => FILES.test(file) && !GENERATED.test(file))
    .flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8').replaceAll(LINE_BREAK, ' ');
      const found = IDIOMS.flatMap((idiom) => [...text.matchAll(idiom)].map(({ index }) => index));
      return [...new Set(found)].map((at) => ({ file, text: text.slice(Math.max(0, at - 30), at + 60) }));
    });
}
