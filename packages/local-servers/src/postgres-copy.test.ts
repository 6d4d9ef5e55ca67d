import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { copyTree } from './postgres-copy.js';

let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'copy-tree-'));
  await mkdir(join(dir, 'from', 'inside'), { recursive: true, mode: 0o700 });
  for (const name of ['a', 'b', join('inside', 'c')]) await writeFile(join(dir, 'from', name), name);
});
afterAll(() => rm(dir, { recursive: true }));

test('a copy has every wanted file, and the mode of the folder', async () => {
  await copyTree(join(dir, 'from'), join(dir, 'to'), (path) => !path.endsWith('b'));
  expect(await readFile(join(dir, 'to', 'inside', 'c'), 'utf8')).toBe(join('inside', 'c'));
  expect((await readdir(join(dir, 'to'))).sort()).toEqual(['a', 'inside']);
  expect((await stat(join(dir, 'to'))).mode & 0o777).toBe(0o700);
});

test('files and folders that vanish during the copy are left out', async () => {
  const from = join(dir, 'from');
  const vanish = (path: string) => {
    if (!path.endsWith('a')) rmSync(path, { recursive: true });
    return true;
  };
  await copyTree(from, join(dir, 'rest'), vanish);
  expect(await readdir(join(dir, 'rest'))).toEqual(['a']);
});

test('a folder that is not there is an error', async () => {
  await expect(copyTree(join(dir, 'none'), join(dir, 'other'), () => true)).rejects.toThrow('ENOENT');
});
