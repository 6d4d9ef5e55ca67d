import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

/** Runs a small bundle with scripts/lib/code-cache.mjs, in a process for each start. */

let dir: string;
beforeAll(() => {
  dir = temporaryDirectory('code-cache');
  const loader = pathToFileURL(join(repositoryRoot, 'scripts', 'lib', 'code-cache.mjs')).href;
  writeFileSync(
    join(dir, 'main.mjs'),
    `import { runBundle } from '${loader}';\nprocess.umask(0);\nrunBundle(import.meta.dirname, 'app.cjs', 'cache');\n`,
  );
  writeFileSync(join(dir, 'app.cjs'), "console.log(require('./shared.cjs').sum([1, 2, 3]));\n");
  writeFileSync(
    join(dir, 'shared.cjs'),
    'exports.sum = (list) => { let all = 0; for (const each of list) all += each; return `sum ${all}`; };\n',
  );
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const start = () => execFileSync(process.execPath, [join(dir, 'main.mjs')], { encoding: 'utf8' });
const cached = () => {
  const cache = join(dir, 'cache');
  const [version] = readdirSync(cache);
  return readdirSync(join(cache, version!)).map((name) => join(cache, version!, name));
};
const contents = () => cached().map((path) => readFileSync(path).toString('base64'));

test('compiled code is kept, and only its user may change it', () => {
  expect(start()).toBe('sum 6\n');
  expect(cached().map((path) => path.split('/').at(-1))).toEqual(['app.cjs', 'shared.cjs']);
  for (const path of cached())
    expect((statSync(path).mode & 0o022) | (statSync(join(path, '..')).mode & 0o022)).toBe(0);
  const before = contents();
  expect(start()).toBe('sum 6\n');
  expect(contents()).toEqual(before);
});

test.each([
  ['flipped bits', (code: Buffer) => Buffer.from(code.map((byte, at) => (at > code.length / 2 ? byte ^ 0x5a : byte)))],
  ['another file', () => Buffer.from('not compiled code')],
  ['an empty file', () => Buffer.alloc(0)],
  ['half a file', (code: Buffer) => code.subarray(0, code.length / 2)],
])('a cache with %s changes nothing and is replaced', (_damage, damaged) => {
  start();
  const before = contents();
  for (const path of cached()) writeFileSync(path, damaged(readFileSync(path)));
  const broken = contents();
  expect(start()).toBe('sum 6\n');
  expect(contents()).toHaveLength(before.length);
  for (const [index, content] of contents().entries()) expect(content).not.toBe(broken[index]);
});
