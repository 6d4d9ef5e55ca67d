import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { temporaryDirectory } from '@callplane/testing';
import { findJanus, installJanus } from './bootstrap.js';

test('two starts at once replace a broken Janus by one that runs, and leave nothing else', async () => {
  // A quote or a blank in the path of a clone reaches a shell script and the configuration of apt-get.
  const folder = join(temporaryDirectory('janus'), "it's a folder", 'janus');
  const program = join(folder, 'usr', 'bin', 'janus');
  for (const file of [program, join(`${folder}.draft`, 'unpacked', 'usr', 'bin', 'janus')]) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, 'half of a prog', { mode: 0o755 });
  }
  const install = () => installJanus({ say: () => undefined, folder });
  await Promise.all([install(), install()]);
  expect(readdirSync(dirname(folder)).sort()).toEqual(['janus', 'janus.lock']);

  const { PATH, JANUS_PATH } = process.env;
  Object.assign(process.env, { PATH: dirname(folder), JANUS_PATH: '' });
  const found = findJanus(folder);
  Object.assign(process.env, { PATH, JANUS_PATH });
  expect(found).toEqual({ program, version: expect.stringMatching(/^1\.(?:[4-9]|\d\d)/) });
  const { ino } = statSync(program);
  await install();
  expect(statSync(program).ino).toBe(ino);
});
