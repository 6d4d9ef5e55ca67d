/**
 * `npm run docs:words`: counts the words of the documents and fails if a group is above its budget, a decision is too
 * long, or a page has no group. A word contains a letter or a digit; diagrams do not count. It also fails if sources,
 * tests and documents have more idioms that make a reader go back than before;
 * `npm run docs:words -- --idioms` lists them.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib/files.mjs';

/**
 * Idioms that make a reader go back, because their subject is no thing with a name (docs/style.md). `npm run docs:words`
 * refuses more of them than {@link IDIOMS_MAX}.
 */

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

/** The first group whose pattern matches has the page. */
const GROUPS = [
  { name: 'README, quick start', budget: 1500, pages: /^README\.md$/ },
  {
    name: 'API, errors, tokens, webhooks, receivers, TURN, recordings',
    budget: 8950,
    pages:
      /^docs\/(api|errors|tokens|webhooks|receivers|turn|recordings)\.md$|^packages\/webhook-verifier\/README\.md$/,
  },
  {
    name: 'signaling, browser SDK, server SDK',
    budget: 7210,
    pages: /^docs\/(signaling|client-sdk|server-sdk)\.md$|^packages\/(client|server)-js\/README\.md$/,
  },
  { name: 'requests and streams', budget: 1050, pages: /^docs\/data\.md$/ },
  { name: 'breakouts', budget: 700, pages: /^docs\/breakouts\.md$/ },
  { name: 'lobby', budget: 600, pages: /^docs\/lobby\.md$/ },
  { name: 'encryption', budget: 800, pages: /^docs\/encryption\.md$/ },
  { name: 'encoders', budget: 1000, pages: /^docs\/whip\.md$/ },
  { name: 'React', budget: 750, pages: /^docs\/react\.md$|^packages\/react\/README\.md$/ },
  {
    name: 'operations',
    budget: 14_150,
    pages: /^docs\/(operations|local|media|console|release)\.md$|^docs\/operations\//,
  },
  {
    name: 'reference: configuration, CLI, limits, routes, diagnoses',
    budget: 9450,
    pages: /^docs\/(configuration|cli|limits|routes|diagnoses)\.md$/,
  },
  { name: 'architecture, data model', budget: 4260, pages: /^docs\/(architecture|data-model)\.md$/ },
  { name: 'guarantees, results', budget: 3960, pages: /^docs\/(guarantees|benchmarks)\.md$/ },
  { name: 'contributing, style, glossary', budget: 2600, pages: /^CONTRIBUTING\.md$|^docs\/style\.md$/ },
  { name: 'decisions', budget: 7500, pages: /^docs\/decisions\// },
  { name: 'changelog, vulnerabilities', budget: 1250, pages: /^(CHANGELOG|SECURITY)\.md$/ },
  { name: 'beside the code', budget: 2000, pages: /^(apps|packages|lab|infra)\// },
];
const DECISIONS_MAX = 23;
const DECISION_WORDS_MAX = 300;
/** The call path has one long record; rooms have one with several subjects. */
const LONG_DECISIONS = [
  { page: /\/\d+-the-call-path\.md$/, wordsMax: 2000 },
  { page: /\/\d+-webhooks-and-rooms\.md$/, wordsMax: 820 },
];

/** @param {string} page */
function wordsOf(page) {
  const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```mermaid\n[^]*?^```$/gm, '');
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
});
const files = [...new Set(listed.split('\n'))].filter((file) => file !== '' && existsSync(join(root, file)));
const pages = files.filter((file) => file.endsWith('.md'));
/** @type {string[]} */
const wrong = [];
const counted = GROUPS.map((group) => ({ ...group, words: 0 }));
for (const page of pages) {
  const group = counted.find((candidate) => candidate.pages.test(page));
  if (group === undefined) wrong.push(`${page} belongs to no group of scripts/docs-words.mjs`);
  else group.words += wordsOf(page);
}
for (const { name, budget, words } of counted) {
  console.log(`${String(words).padStart(6)} of ${String(budget).padStart(6)}  ${name}`);
  if (words > budget) wrong.push(`${name}: ${words} words, ${words - budget} above the budget`);
}
console.log(`${String(counted.reduce((sum, { words }) => sum + words, 0)).padStart(6)} in all`);

const decisions = pages.filter((page) => /^docs\/decisions\/\d/.test(page));
if (decisions.length > DECISIONS_MAX) wrong.push(`${decisions.length} decisions, at most ${DECISIONS_MAX}`);
for (const page of decisions) {
  const { wordsMax = DECISION_WORDS_MAX } = LONG_DECISIONS.find((long) => long.page.test(page)) ?? {};
  if (wordsOf(page) > wordsMax) wrong.push(`${page}: ${wordsOf(page)} words, at most ${wordsMax}`);
}

const idioms = findIdioms(files);
console.log(`${String(idioms.length).padStart(6)} of ${String(IDIOMS_MAX).padStart(6)}  idioms`);
if (process.argv.includes('--idioms')) for (const { file, text } of idioms) console.log(`${file}: … ${text} …`);
if (idioms.length > IDIOMS_MAX) {
  wrong.push(
    `${idioms.length} idioms, at most ${IDIOMS_MAX}: npm run docs:words -- --idioms lists them (docs/style.md)`,
  );
}

for (const line of wrong) console.error(line);
process.exitCode = wrong.length === 0 ? 0 : 1;
