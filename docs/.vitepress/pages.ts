/** Which files of the repository are pages of the site, and what their links and diagrams become there. */
import { existsSync, statSync } from 'node:fs';
import { dirname, join, posix, relative, resolve } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';

const root = resolve(import.meta.dirname, '../..');

export const SOURCES = {
  excluded: ['**/src/**', 'tests/**', 'infra/**', 'release/**', 'lab/**', 'docs/reference/**'],
};

/** From a path in the repository to a path in the site. */
export const REWRITES: Record<string, string> = {
  'README.md': 'index.md',
  'CONTRIBUTING.md': 'contributing.md',
  'CHANGELOG.md': 'changelog.md',
  'SECURITY.md': 'reporting-a-vulnerability.md',
  'packages/client-js/README.md': 'browser-sdk-reference.md',
  'packages/react/README.md': 'react-package.md',
  'packages/server-js/README.md': 'server-sdk.md',
  'packages/webhook-verifier/README.md': 'webhook-verifier.md',
  'docs/decisions/README.md': 'decisions/index.md',
  'docs/:page*': ':page*',
};
/** Files that the site serves beside its pages. */
const FILES = new Set(['docs/openapi.json', 'docs/signaling.schema.json']);

/** The id of a heading as GitHub derives it, so that one link works in both. */
export function headingId(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
    .replaceAll(' ', '-');
}

/** The address in the site of a path in the repository; null if the site does not have it. */
function addressOf(path: string): string | null {
  if (FILES.has(path)) return `/${path.slice('docs/'.length)}`;
  const page =
    existsSync(join(root, path)) && statSync(join(root, path)).isDirectory() ? join(path, 'README.md') : path;
  const renamed = REWRITES[page];
  if (renamed !== undefined) return `/${renamed}`;
  return page.startsWith('docs/') && page.endsWith('.md') ? `/${page.slice('docs/'.length)}` : null;
}

/** Turns relative links between files into links between pages. A link to a source file becomes its text. */
export function repositoryLinks(md: MarkdownRenderer): void {
  md.core.ruler.push('repository-links', (state) => {
    const { tokens } = state;
    const { path, realPath = path } = state.env as { path: string; realPath?: string };
    const from = dirname(relative(root, realPath));
    for (const { children } of tokens) {
      let isDropped = false;
      for (const token of children ?? []) {
        if (token.type === 'link_open') isDropped = !mapLink(token, from);
        if (!isDropped || !token.type.startsWith('link_')) continue;
        if (token.type === 'link_close') isDropped = false;
        Object.assign(token, { type: 'text', tag: '', content: '', nesting: 0, attrs: null });
      }
    }
  });
}

interface Link {
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

/** @returns whether the link stays a link */
function mapLink(token: Link, from: string): boolean {
  const target = token.attrGet('href') ?? '';
  if (/^([a-z][a-z0-9+.-]*:|#|$)/i.test(target)) return true;
  const [path = '', anchor] = decodeURIComponent(target).split('#');
  const address = addressOf(posix.normalize(posix.join(from, path)).replace(/\/$/, ''));
  if (address === null) return false;
  token.attrSet('href', anchor === undefined ? address : `${address}#${anchor}`);
  return true;
}

/** Draws what GitHub draws: the theme has the element. */
export function diagrams(md: MarkdownRenderer): void {
  const { fence } = md.renderer.rules;
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info = '', content = '' } = tokens[index] ?? {};
    if (info.trim() === 'mermaid') return `<Diagram source="${encodeURIComponent(content)}" />`;
    return fence?.(tokens, index, ...rest) ?? '';
  };
}
