import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import { INTRODUCTION } from './introduction.js';
import { GUIDE_BYTES_MAX, readGuides } from './guides.js';

const guides = readGuides();
const linksIn = (text: string) =>
  [...text.replaceAll(/^```[^]*?^```/gm, '').matchAll(/\]\(([^()\s]+)\)/g)].map(([, to]) => to!);
/** Ids as the page makes them; docs-page.slow.test.ts compares some in a browser. */
const headingsIn = (text: string) =>
  [...text.replaceAll(/^```[^]*?^```/gm, '').matchAll(/^##+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  );

describe('the guides', () => {
  test('are those that the introduction links', () => {
    const linked = linksIn(INTRODUCTION).map((to) => to.replace('/docs/guides/', ''));
    expect(linked.sort()).toEqual(guides.map(({ name }) => name).sort());
    expect(guides.length).toBeGreaterThan(10);
  });

  test.each(guides)(
    '$name has a title, and its links lead to guides, headings, the reference or other hosts',
    (guide) => {
      expect(guide.title).not.toMatch(/`|^$/);
      expect(guide.text).not.toMatch(/^# /);
      for (const link of linksIn(guide.text).filter((to) => !to.startsWith('https://'))) {
        const [, name = guide.name, heading] =
          /^(?:\/docs\/guides\/([a-z-]+))?(?:#description\/(.+))?$/.exec(link) ?? [];
        const target = guides.find((one) => one.name === name);
        const isReference = link === '/openapi.json';
        const isFound = heading === undefined || headingsIn(target?.text ?? '').includes(heading);
        expect([link, isReference || (target !== undefined && isFound)]).toEqual([link, true]);
      }
    },
  );

  test('keep code as it is, and the text of links to files that are not served', () => {
    const root = temporaryDirectory('guides');
    mkdirSync(join(root, 'docs'));
    const code = '```md\n# [a](api.md)\n```';
    const text = `# The \`rtc\`\n\n## With \`code\`\n\n[one](tokens.md#form) [two](#with-code) [three](tour.md) [four](../x.md)\n\n${code}\n`;
    writeFileSync(join(root, 'docs/cli.md'), text);
    writeFileSync(join(root, 'docs/api.md'), `# Long\n${'x'.repeat(GUIDE_BYTES_MAX)}`);
    const links = '[one](/docs/guides/tokens#description/form) [two](#description/with-code) three four';
    expect(readGuides(root)).toEqual([
      { name: 'cli', label: 'rtc', title: 'The rtc', text: `\n## With code\n\n${links}\n\n${code}\n` },
    ]);
    expect(readGuides(null)).toEqual([]);
  });
});
