import { expect, test } from '@jest/globals';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { repositoryRoot } from '@callplane/testing';

const GZIP_BYTES_MAX = 250_000;
const DIST = join(repositoryRoot, 'apps', 'console', 'dist');

/** The files that the page loads sooner or later. The folder may hold others, of an earlier build. */
function filesOfPage(): string[] {
  const found = ['index.html'];
  for (const name of found) {
    const text = readFileSync(join(DIST, name), 'utf8');
    for (const [, asset] of text.matchAll(/([\w.-]+\.(?:js|css|svg))/g)) {
      const path = join('assets', asset!);
      if (!found.includes(path) && existsSync(join(DIST, path))) found.push(path);
    }
  }
  return found;
}

test('all files of the console together have less than 250 KB with gzip', () => {
  const files = filesOfPage();
  const bytes = files.reduce((sum, file) => sum + gzipSync(readFileSync(join(DIST, file))).length, 0);
  console.log('measured: gzip bytes of the console', bytes, 'in files', files.length);
  expect(files.length).toBeGreaterThan(20);
  expect(bytes).toBeGreaterThan(100_000);
  expect(bytes).toBeLessThan(GZIP_BYTES_MAX);
});

test('the licences of the libraries are beside the bundle', () => {
  const licences = readFileSync(join(DIST, 'licences.txt'), 'utf8');
  for (const name of ['react', 'react-dom', 'scheduler', '@tanstack/query-core', '@tanstack/virtual-core']) {
    expect(licences).toContain(name);
  }
  expect(licences).toContain('Permission is hereby granted');
});
