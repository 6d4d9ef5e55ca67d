import { expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { repositoryRoot } from '@callplane/testing';

const GZIP_BYTES_MAX = 250_000;
const DIST = join(repositoryRoot, 'apps', 'console', 'dist');

test('all files of the console together have less than 250 KB with gzip', () => {
  const names = readdirSync(DIST, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const bytes = files.reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0);
  console.log('measured: gzip bytes of the console', bytes);
  expect(files.length).toBeGreaterThan(10);
  expect(bytes).toBeLessThan(GZIP_BYTES_MAX);
});

test('the page of the console contains no inline script, no inline style and nothing from another host', () => {
  const html = readFileSync(join(DIST, 'index.html'), 'utf8');
  expect(html).not.toMatch(/<style|style=|<script(?![^>]*\ssrc="\/console\/)|\son\w+=|https?:\/\//);
});
