import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import { servePages } from '../http/pages.testkit.js';
import { consolePages } from './console-pages.js';

const SCRIPT = 'console.log(1)';

function built(): string {
  const folder = temporaryDirectory('console');
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'index.html'), '<!doctype html><title>Console</title>');
  writeFileSync(join(folder, 'assets', 'index-abc.js'), SCRIPT);
  writeFileSync(join(folder, 'favicon.svg'), '<svg/>');
  return folder;
}

const pages = (folder: string | null, signalingUrl: string | null = null) =>
  servePages('/console', consolePages(folder, signalingUrl, 'https://s3.example.com'));

describe('the console', () => {
  test('shows its page at every path without a file extension, with strict headers and without a cache', async () => {
    const ask = await pages(built(), 'wss://calls.example.com:8443/v1/signaling');
    for (const path of ['/console', '/console/', '/console/rooms/room_1', '/console/..%2f..%2fetc/passwd']) {
      const { status, text, headers } = await ask(path);
      expect([path, status, text]).toEqual([path, 200, '<!doctype html><title>Console</title>']);
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'x-frame-options': expect.any(String),
      });
      const policy = headers['content-security-policy']!;
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';");
      expect(policy).toContain("connect-src 'self' wss://calls.example.com:8443;");
      expect(policy).toContain("media-src 'self' blob: https://s3.example.com;");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('unsafe');
    }
  });

  test('caches files with a hash in their name for a year', async () => {
    const ask = await pages(built());
    const script = await ask('/console/assets/index-abc.js');
    expect([script.text, script.headers['cache-control']]).toEqual([SCRIPT, 'public, max-age=31536000, immutable']);
    const icon = await ask('/console/favicon.svg');
    expect([icon.headers['content-type'], icon.headers['cache-control']]).toEqual(['image/svg+xml', 'no-cache']);
    const head = await ask('/console/', { method: 'HEAD' });
    expect([head.status, head.text]).toEqual([200, '']);
  });

  test('serves no other file, no other method, and says so if it is not built', async () => {
    const ask = await pages(built());
    for (const path of [
      '/console/nothing.js',
      '/console/assets/..%2f..%2fpackage.json',
      '/console/%2e%2e/package.json',
    ]) {
      expect([path, (await ask(path)).status]).toEqual([path, 404]);
    }
    const post = await ask('/console/', { method: 'POST' });
    expect([post.status, post.headers['allow']]).toEqual([405, 'GET, HEAD']);
    const missing = await (await pages(null))('/console/');
    expect([missing.status, JSON.parse(missing.text).error.message]).toEqual([
      404,
      expect.stringContaining('is not built'),
    ]);
  });
});
