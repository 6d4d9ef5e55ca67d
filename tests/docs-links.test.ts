import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { repositoryRoot } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';

/** Checks that links between the documents lead to an existing file and heading, and that paths in their text exist. */

const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: repositoryRoot,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(repositoryRoot, file)));
const files = tracked.filter((file) => file.endsWith('.md'));

/** The text without code blocks, in which brackets are no links and `#` marks no heading. */
function prose(file: string): string {
  return readFileSync(file, 'utf8').replaceAll(/^( *)(```|~~~)[^]*?^\1\2/gm, '');
}

/** Anchors as GitHub derives them; a repeated heading gets the suffix `-1`, `-2` and so on. */
function anchorsOf(file: string): Set<string> {
  const counts = new Map<string, number>();
  const anchors = [...prose(file).matchAll(/^#{1,6} +(.+?) *#*$/gm)].map(([, title]) => {
    const anchor = title!
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
      .replaceAll(' ', '-');
    const before = counts.get(anchor) ?? 0;
    counts.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
  return new Set(anchors);
}

function linksIn(file: string): string[] {
  const text = prose(file).replaceAll(/`[^`\n]*`/g, (code) => (code.includes('](') ? '' : code));
  const inline = [...text.matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g)].map(([, target]) => target!);
  const references = [...text.matchAll(/^\[[^\]]+\]: +(\S+)/gm)].map(([, target]) => target!);
  return [...inline, ...references].filter((target) => !/^[a-z][a-z0-9+.-]*:/i.test(target));
}

function wrongIn(file: string): string[] {
  return linksIn(file).flatMap((target) => {
    const [path = '', anchor] = target.split('#');
    const to = path === '' ? file : resolve(dirname(file), decodeURIComponent(path));
    if (!existsSync(to)) return [`${target}: there is no such file`];
    if (relative(repositoryRoot, to).startsWith('..')) return [`${target}: leads out of the repository`];
    if (anchor === undefined || anchor === '' || statSync(to).isDirectory() || !to.endsWith('.md')) return [];
    return anchorsOf(to).has(anchor) ? [] : [`${target}: there is no such heading`];
  });
}

/** Every file and folder of the repository, each after a slash. */
const PATHS = new Set(
  tracked.flatMap((file) => file.split('/').map((_, at, parts) => `/${parts.slice(0, at + 1).join('/')}`)),
);
const TOP_FOLDERS = new Set(tracked.filter((file) => file.includes('/')).map((file) => file.split('/')[0]));
/** A file that a release writes. */
const WRITTEN = ['NOTES.md'];

/**
 * Paths below a folder of the repository, and names of source files, in code of a text line or of a block without a
 * language. `<noun>`, `<14 digits>` and `*` stand for a part of a name.
 */
function pathsIn(page: string): string[] {
  const text = readFileSync(join(repositoryRoot, page), 'utf8');
  const blocks = [...text.matchAll(/^```\n([^]*?)^```$/gm)].map(([, block]) => block!.replaceAll(/ {2,}.*$/gm, ''));
  const codes = [...text.replaceAll(/^```[^]*?^```$/gm, '').matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!);
  const words = [...blocks, ...codes].flatMap((code) => code.replaceAll(/<[^<>]*>/g, '*').split(/[\s,;]+/));
  return words
    .map((word) => word.replace(/^\.\//, '').replace(/\/$/, ''))
    .filter((word) => /^\*?[\w.*-]+(?:\/[\w.*-]+)*$/.test(word) && !WRITTEN.includes(word))
    .filter((word) => {
      const isBelow = word.includes('/') && TOP_FOLDERS.has(word.split('/')[0]);
      return isBelow || /\.(?:tsx?|mjs|md|sh|tpl|prisma)$/.test(word) || /\/.*\.(?:js|sql|ya?ml|conf)$/.test(word);
    });
}

/** Files and folders that programs write, such as compiled ones. */
function isIgnored(path: string): boolean {
  return spawnSync('git', ['check-ignore', path, `${path}/`], { cwd: repositoryRoot }).status === 0;
}

function exists(path: string): boolean {
  const pattern = path.split('*').map((part) => part.replaceAll('.', '\\.'));
  const regex = new RegExp(`/${pattern.join('[^/]+')}$`);
  return [...PATHS].some((known) => regex.test(known)) || isIgnored(path.replaceAll('*', 'x'));
}

test.each(files)('paths in the text of %s exist', (page) => {
  expect(pathsIn(page).filter((path) => !exists(path))).toEqual([]);
});

describe('every relative link leads to a file and to a heading in it', () => {
  test.each(files)('%s', (file) => expect(wrongIn(join(repositoryRoot, file))).toEqual([]));
});

test('the README reaches every document, directly or through other documents', () => {
  const reached = new Set<string>();
  const visit = (file: string): void => {
    if (reached.has(file) || !file.endsWith('.md') || !existsSync(file)) return;
    reached.add(file);
    for (const target of linksIn(file)) {
      const to = resolve(dirname(file), target.split('#')[0]!);
      visit(existsSync(to) && statSync(to).isDirectory() ? join(to, 'README.md') : to);
    }
  };
  visit(join(repositoryRoot, 'README.md'));
  const documents = files.filter((file) => file.startsWith('docs/') || !file.includes('/'));
  expect(documents.filter((file) => !reached.has(join(repositoryRoot, file)))).toEqual([]);
});
