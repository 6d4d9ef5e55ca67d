import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

/** A guide as the documentation page shows it. */
export interface Guide {
  name: string;
  /** In the list of guides. */
  label: string;
  title: string;
  /** Markdown without the heading of the page. Its links lead to other guides or to the reference. */
  text: string;
}

/** The guides for callers of the API, in the order of the list, with their files in the repository. */
const GUIDES = [
  { name: 'api', label: 'API', file: 'docs/api.md' },
  { name: 'server-sdk', label: 'Server SDK', file: 'packages/server-js/README.md' },
  { name: 'tokens', label: 'Tokens', file: 'docs/tokens.md' },
  { name: 'client-sdk', label: 'Browser SDK', file: 'docs/client-sdk.md' },
  { name: 'webhooks', label: 'Webhooks', file: 'docs/webhooks.md' },
  { name: 'receivers', label: 'Receivers', file: 'docs/receivers.md' },
  { name: 'webhook-verifier', label: 'Verifier', file: 'packages/webhook-verifier/README.md' },
  { name: 'turn', label: 'TURN', file: 'docs/turn.md' },
  { name: 'signaling', label: 'Signaling', file: 'docs/signaling.md' },
  { name: 'errors', label: 'Errors', file: 'docs/errors.md' },
  { name: 'limits', label: 'Limits', file: 'docs/limits.md' },
  { name: 'cli', label: 'rtc', file: 'docs/cli.md' },
];
/** A longer file is not served. */
export const GUIDE_BYTES_MAX = 128 * 1024;

/** Reads the guides. A deployment without the documents serves none. */
export function readGuides(root: string | null = rootOfDocuments()): Guide[] {
  if (root === null) return [];
  return GUIDES.flatMap(({ name, label, file }) => {
    const path = join(root, file);
    if (!existsSync(path) || statSync(path).size > GUIDE_BYTES_MAX) return [];
    const [, title = label, text = ''] = /^# (.+)\n([^]*)$/.exec(readFileSync(path, 'utf8')) ?? [];
    return [{ name, label, title: plain(title), text: adapted(text, file) }];
  });
}

/** The folder above this module that has the documents: the repository, or the image's /app. */
function rootOfDocuments(): string | null {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'docs', 'webhooks.md'))) return folder;
    if (folder === dirname(folder)) return null;
  }
}

/** Adapts headings and links, but no code. */
function adapted(text: string, file: string): string {
  const parts = text.split(/(^```[^]*?^```)/m);
  return parts.map((part) => (part.startsWith('```') ? part : replaceLinks(plainHeadings(part), file))).join('');
}

/** The page leaves code out of the ids of headings, unlike the links of the documents. */
function plainHeadings(part: string): string {
  return part.replaceAll(/^#+ .*$/gm, plain);
}

function plain(heading: string): string {
  return heading.replaceAll('`', '');
}

/** Turns links to files into links to guides. A link to another file keeps only its text. */
function replaceLinks(part: string, file: string): string {
  return part.replaceAll(/\[([^[\]]+)\]\(([^()\s]+)\)/g, (link, label: string, target: string) => {
    if (/^[a-z]+:/.test(target)) return link;
    const [path = '', anchor] = target.split('#');
    const to = path === '' ? file : posix.join(posix.dirname(file), path);
    const address = to === 'docs/openapi.json' ? '/openapi.json' : guideAt(to);
    if (address === null) return label;
    // The page gives each heading such an id.
    const fragment = anchor === undefined ? '' : `#description/${anchor}`;
    return `[${label}](${path === '' ? fragment : address + fragment})`;
  });
}

function guideAt(file: string): string | null {
  const found = GUIDES.find((guide) => guide.file === file);
  return found === undefined ? null : `/docs/guides/${found.name}`;
}
