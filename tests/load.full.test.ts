import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { appMain } from '@callplane/testing';
import { beforeAll, expect, test } from '@jest/globals';
import { openStage, type Stage } from './browser/stage.testkit.js';

/** `rtc load` as an operator uses it: a process that has nothing but the URLs of a service and an API key. */

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});

async function load(...options: string[]) {
  const env = { CALLPLANE_API_KEY: stage.key, CALLPLANE_URL: stage.api.url, CALLPLANE_SIGNALING_URL: stage.url };
  const args = [appMain('cli'), 'load', '--minutes', '0.05', ...options];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  return stdout;
}

test('rtc load fills a room, reports what each viewer received, and ends the room', async () => {
  const report = JSON.parse(await load('--publishers', '2', '--viewers', '3', '--json'));
  expect(report).toMatchObject({
    publishers: 2,
    viewers: 3,
    joinedMs: { count: 3 },
    firstPictureMs: { count: 3 },
    allPicturesMs: { count: 3 },
    reconnections: 0,
    failures: [],
    processors: [],
  });
  expect(report.kbps.median).toBeGreaterThan(100);
  expect(report.framesPerSecond.median).toBeGreaterThan(1);
  const { body: room } = await stage.call('GET', `/v1/rooms/${report.roomId}`);
  expect(['ending', 'ended']).toContain(room.status);
});

test('rtc load adds viewers to a room that exists, which stays, and prints a table', async () => {
  const roomId = await stage.newRoom();
  const stdout = await load('--room', roomId, '--viewers', '1', '--metrics', 'http://127.0.0.1:9/metrics');
  expect(stdout).toMatch(/^1 publishers, 1 viewers, 3 s, 0 reconnections\n\nWHAT +VIEWERS +MEDIAN +95 % +WORST\n/);
  expect(stdout).toMatch(/^joined +1 +\d+ ms/m);
  expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:9\/metrics: no processor time seen$/m);
  expect(stdout).toMatch(/^this machine: \d+ % of a core, of \d+ cores$/m);
  expect((await stage.call('GET', `/v1/rooms/${roomId}`)).body.status).toBe('active');
});
