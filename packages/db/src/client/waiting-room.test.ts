import { expect, test } from '@jest/globals';
import { createTestDatabase, PATIENT_DEADLINES, startTcpProxy, stopAtEnd } from '@callplane/testing';
import { Database } from './database.js';
import { isDatabaseUnavailable } from './unavailable.js';
import { WaitingRoom } from './waiting-room.js';

/** Longer than the tests take. */
const LONG_MS = 600_000;

/** A database behind a proxy that refuses connections until `restore`. */
async function openAway(waitMs: number) {
  const url = new URL((await createTestDatabase()).url);
  const proxy = await startTcpProxy([{ host: url.hostname, port: Number(url.port) }]);
  proxy.cut();
  url.port = String(proxy.port);
  const database = new Database({ url: url.href, poolMax: 2, deadlines: PATIENT_DEADLINES, waitMs });
  stopAtEnd(() => database.close());
  return { database, restore: () => proxy.restore() };
}

const outcomeOf = (asked: PromiseLike<unknown>) =>
  Promise.resolve(asked).then(
    () => 'done',
    (error: unknown) => (isDatabaseUnavailable(error) ? 'unavailable' : error),
  );

test('statements and transactions wait for a PostgreSQL that refuses connections, the check of readiness does not', async () => {
  const { database, restore } = await openAway(LONG_MS);
  const asked = Array.from({ length: 20 }, () => outcomeOf(database.ping()));
  asked.push(outcomeOf(database.transaction((sql) => sql.$queryRaw`SELECT 1`)));
  expect(await outcomeOf(database.checkReady())).toBe('unavailable');
  restore();
  expect(new Set(await Promise.all(asked))).toEqual(new Set(['done']));
});

test('callers whose time is over fail', async () => {
  const { database } = await openAway(300);
  const asked = [database.ping(), database.ping(), database.ping()].map(outcomeOf);
  expect(await Promise.all(asked)).toEqual(['unavailable', 'unavailable', 'unavailable']);
});

test('a caller that tries again keeps its place before later ones', () => {
  const room = new WaitingRoom(LONG_MS, 2);
  const now = performance.now();
  const retried: string[] = [];
  room.wait(now, () => retried.push('later'));
  room.wait(now - 1, () => retried.push('earlier'));
  room.open();
  expect(retried).toEqual(['earlier', 'later']);
});

test('no more callers wait than may wait', () => {
  const room = new WaitingRoom(LONG_MS, 2);
  const retried: string[] = [];
  const wait = (name: string) => room.wait(performance.now(), () => retried.push(name));
  expect([wait('ada'), wait('bob'), wait('eve')]).toEqual([true, true, false]);
  room.open();
  expect(retried).toEqual(['ada', 'bob']);
});
