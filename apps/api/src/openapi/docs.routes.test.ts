import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import { servePages } from '../http/pages.testkit.js';
import { docsRouter } from './docs.routes.js';

const SCRIPT = 'document.documentElement.classList.toggle("dark")';

/** Writes a site of two pages. */
function build(folder: string): void {
  mkdirSync(join(folder, 'dist', 'assets'), { recursive: true });
  mkdirSync(join(folder, 'dist', 'decisions'));
  writeFileSync(join(folder, 'dist', 'index.html'), `<script>${SCRIPT}</script>Quick start`);
  writeFileSync(join(folder, 'dist', 'api.html'), 'API guide');
  writeFileSync(join(folder, 'dist', 'decisions', 'index.html'), 'Decisions');
  writeFileSync(join(folder, 'dist', 'assets', 'app.abc.js'), 'export {}');
}

const serve = (folder: string) => servePages('/', docsRouter(folder));

describe('the site of the documents', () => {
  test('has its pages with and without an extension, and runs only the scripts that it was built with', async () => {
    const folder = temporaryDirectory('docs');
    build(folder);
    const ask = await serve(folder);
    for (const [path, text] of [
      ['/docs/', 'Quick start'],
      ['/docs/api.html', 'API guide'],
      ['/docs/api', 'API guide'],
      ['/docs/decisions/', 'Decisions'],
    ] as const) {
      const page = await ask(path);
      expect([path, page.status, page.text]).toEqual([path, 200, expect.stringContaining(text)]);
      const hash = createHash('sha256').update(SCRIPT).digest('base64');
      expect(page.headers['content-security-policy']).toContain(`script-src 'self' 'sha256-${hash}';`);
      expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    }
    expect((await ask('/docs/assets/app.abc.js')).headers['cache-control']).toContain('immutable');
    expect(await ask('/docs')).toMatchObject({ status: 302, headers: { location: '/docs/' } });
    for (const path of ['/docs/nothing', '/docs/%2e%2e/package.json', '/docs/assets/..%2f..%2fpackage.json']) {
      expect([path, (await ask(path)).status]).toEqual([path, 404]);
    }
    expect((await ask('/docs/api', { method: 'POST' })).status).toBe(405);
  });

  test('appears once it is built, and leads to the reference until then', async () => {
    const folder = temporaryDirectory('docs');
    const ask = await serve(folder);
    expect(await ask('/docs/')).toMatchObject({ status: 302, headers: { location: '/docs/reference/' } });
    expect(await ask('/docs/reference')).toMatchObject({ status: 302, headers: { location: '/docs/reference/' } });
    build(folder);
    expect(await ask('/docs/')).toMatchObject({ status: 200, text: expect.stringContaining('Quick start') });
  });
});
