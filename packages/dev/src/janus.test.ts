import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { temporaryDirectory } from '@callplane/testing';
import { ensureStartPrograms, findJanus, installJanus } from './bootstrap.js';

const given = { ...process.env };
let path: string;
let unpacked: string;

beforeEach(() => {
  const dir = temporaryDirectory('janus');
  path = join(dir, 'bin');
  unpacked = join(dir, 'unpacked');
  Object.assign(process.env, { PATH: path, JANUS_PATH: '' });
});
afterEach(() => {
  process.env = { ...given };
});

/** Writes a program that answers as Janus does. */
function makeJanus(file: string, version: string): string {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\necho 'Janus version: 1 (${version})'\n`, { mode: 0o755 });
  return file;
}
const inPath = (version: string) => makeJanus(join(path, 'janus'), version);
const inFolder = (version: string) => makeJanus(join(unpacked, 'usr', 'bin', 'janus'), version);

test('the start takes the Janus of the PATH, unless only the unpacked one is new enough', () => {
  expect(findJanus(unpacked)).toBeUndefined();
  const older = inPath('1.1.2');
  expect(findJanus(unpacked)).toEqual({ program: older, version: '1.1.2' });
  const current = inFolder('1.4.1');
  expect(findJanus(unpacked)).toEqual({ program: current, version: '1.4.1' });
  const newer = inPath('1.10.0');
  expect(findJanus(unpacked)).toEqual({ program: newer, version: '1.10.0' });
});

test('the start takes the Janus that JANUS_PATH names, and refuses one that does not run', () => {
  const named = makeJanus(join(path, 'mine', 'janus'), '1.3.0');
  inPath('1.4.1');
  process.env['JANUS_PATH'] = named;
  expect(findJanus(unpacked)).toEqual({ program: named, version: '1.3.0' });
  process.env['JANUS_PATH'] = join(path, 'absent');
  expect(() => findJanus(unpacked)).toThrow(/^JANUS_PATH names .*absent, which is no Janus that runs/);
});

test('an older Janus runs for development only, and the start prints instructions', async () => {
  const named = makeJanus(join(path, 'mine', 'janus'), '1.3.9');
  makeJanus(join(path, 'ffmpeg'), 'any');
  Object.assign(process.env, { JANUS_PATH: named, REDIS_URL: 'redis://elsewhere', TURN_URLS: 'turn:elsewhere' });
  const said: string[] = [];
  await ensureStartPrograms({
    say: (line: string) => said.push(line),
    step: (_, work) => work(),
    signal: new AbortController().signal,
  });
  expect(said).toEqual([
    `  Janus 1.3.9 (${named}) runs, for development only: before 1.4.1, a participant can stop or crash it. ` +
      'To change that: set JANUS_PATH to a Janus 1.4.1 or later',
  ]);
});

test('a machine without apt-get learns the missing packages before any download', async () => {
  await expect(installJanus({ say: () => undefined, folder: unpacked })).rejects.toThrow(
    "Debian's package needs apt-get and dpkg-deb",
  );
});
