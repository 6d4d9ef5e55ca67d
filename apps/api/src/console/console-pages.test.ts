import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import express from 'express';
import request from 'supertest';
import { errorHandler } from '../http/errors.js';
import { requestContext } from '../http/request-context.js';
import { securityHeaders } from '../http/security-headers.js';
import { consolePages } from './console-pages.js';

const SCRIPT = `console.log(${JSON.stringify('x'.repeat(2000))})`;

function built(): string {
  const folder = temporaryDirectory('console');
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'index.html'), '<!doctype html><title>Console</title>');
  writeFileSync(join(folder, 'assets', 'index-abc.js'), SCRIPT);
  writeFileSync(join(folder, 'favicon.svg'), '<svg/>');
  writeFileSync(join(folder, 'secret.map'), 'not served');
  return folder;
}

function pages(folder: string | null, signalingUrl: string | null = null) {
  const app = express();
  app.use(requestContext(securityHeaders()));
  app.use('/console', consolePages(folder, signalingUrl));
  app.use(errorHandler);
  return request(app);
}

describe('the console', () => {
  test('shows its page at every path without a file extension, with strict headers and without a cache', async () => {
    const app = pages(built(), 'wss://calls.example.com:8443/v1/signaling');
    for (const path of ['/console', '/console/', '/console/rooms/room_1', '/console/..%2f..%2fetc/passwd']) {
      const { status, text, headers } = await app.get(path);
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
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('unsafe');
    }
  });

  test('caches files with a hash in their name for ever, and compresses for those who can read it', async () => {
    const app = pages(built());
    const gzipped = await app.get('/console/assets/index-abc.js').set('accept-encoding', 'gzip');
    expect(gzipped.text).toBe(SCRIPT);
    expect(gzipped.headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-encoding': 'gzip',
      vary: 'accept-encoding',
    });
    expect(Number(gzipped.headers['content-length'])).toBeLessThan(200);
    const plain = await app.get('/console/assets/index-abc.js').set('accept-encoding', 'identity');
    expect([plain.text, plain.headers['content-encoding']]).toEqual([SCRIPT, undefined]);
    const icon = await app.get('/console/favicon.svg');
    expect([icon.headers['content-type'], icon.headers['cache-control']]).toEqual(['image/svg+xml', 'no-cache']);
    const head = await app.head('/console/');
    expect([head.status, head.text]).toEqual([200, undefined]);
  });

  test('serves no other file, no other method, and says so if it is not built', async () => {
    const app = pages(built());
    for (const path of ['/console/secret.map', '/console/assets/../secret.map', '/console/%2e%2e/package.json']) {
      expect([path, (await app.get(path)).status]).toEqual([path, 404]);
    }
    const post = await app.post('/console/');
    expect([post.status, post.headers['allow']]).toEqual([405, 'GET, HEAD']);
    const missing = await pages(null).get('/console/');
    expect([missing.status, missing.body.error.message]).toEqual([404, expect.stringContaining('is not built')]);
  });
});
