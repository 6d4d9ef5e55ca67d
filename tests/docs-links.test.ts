import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { repositoryRoot } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';

/** Checks that links between the documents lead to an existing file and heading. */

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: repositoryRoot,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(repositoryRoot, file)));

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
