import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { isAlive } from '@callplane/local-servers';
import { repositoryRoot } from '@callplane/testing';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

const WITHIN_MS = 60_000;
/** Long enough for several checks of the watcher. */
const LOOKS_MS = 2_000;

let dir: string;
const pids: number[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'callplane-test-npm-'));
});
afterEach(() => {
  for (const pid of pids.splice(0)) kill(pid);
  rmSync(dir, { recursive: true });
});

function kill(pid: number) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has ended.
  }
}

async function until(condition: () => boolean) {
  const end = performance.now() + WITHIN_MS;
  while (!condition()) {
    if (performance.now() > end) throw new Error('not within a minute');
    await delay(20);
  }
}

/**
 * Runs a script with the watcher through a real npm that a shell starts in the background.
 * @param script with PROBE as the placeholder of the program
 */
async function startInBackground(script: string) {
  const probe = join(dir, 'probe.mjs');
  writeFileSync(
    probe,
    `import { renameSync, writeFileSync } from 'node:fs';
     import { findNpm, watchNpm } from ${JSON.stringify(pathToFileURL(join(repositoryRoot, 'packages/dev/dist/start/npm-parent.js')).href)};
     watchNpm(() => process.exit());
     writeFileSync('starting.json', JSON.stringify({ probe: process.pid, npm: findNpm()?.pid }));
     // Readers of the file must not find it half written.
     renameSync('starting.json', 'started.json');
     setInterval(() => undefined, 1000);`,
  );
  const command = script.replace('PROBE', `node ${probe}`);
  writeFileSync(
    join(dir, 'package.json'),
    JSON.stringify({ name: 'x', version: '1.0.0', scripts: { start: command } }),
  );
  // Like a shell of ssh or CI: it ends once the file exists, before npm does.
  const shell = spawn('sh', ['-c', 'npm start > npm.log 2>&1 & while [ ! -e started.json ]; do sleep 0.1; done'], {
    cwd: dir,
    stdio: 'ignore',
  });
  const ended = new Promise((resolve) => shell.once('exit', resolve));
  await until(() => existsSync(join(dir, 'started.json')));
  await ended;
  const started: { probe: number; npm: number } = JSON.parse(readFileSync(join(dir, 'started.json'), 'utf8'));
  pids.push(started.probe, started.npm);
  return started;
}

describe('a script that npm runs', () => {
  test.each(['exec PROBE', 'PROBE; true'])(
    'keeps running when the shell that started npm has ended, and detects that npm was killed (%s)',
    async (script) => {
      const { probe, npm } = await startInBackground(script);
      expect(npm).toBeGreaterThan(0);
      await delay(LOOKS_MS);
      expect([isAlive(probe), isAlive(npm)]).toEqual([true, true]);
      process.kill(npm, 'SIGKILL');
      await until(() => !isAlive(probe));
    },
  );
});
