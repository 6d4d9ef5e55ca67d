import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from '@jest/globals';
import { recordingFileKey } from '@callplane/core';
import type { Database } from '@callplane/db';
import { capture, type TestPacket } from '@callplane/testing';
import fc from 'fast-check';
import type { Deps } from '../deps.js';
import {
  agentPassed,
  begin,
  deps,
  files,
  operationId,
  recordingId,
  roomId,
  row,
  ship,
  store,
  work,
} from './recorder.testkit.js';

/** `FAULT_RUNS=1000 npm run test:all -- --rest --testPathPatterns=recording-kills` tries more. */
const RUNS = Number(process.env['FAULT_RUNS'] ?? 25);

/** A recorder that is killed at a call to PostgreSQL or the store, which may still have its effect. */
interface Kill {
  call: number;
  isAfter: boolean;
}
/** A whole attempt makes fewer calls. */
const CALLS_MAX = 30;
const KILLS = fc.array(fc.record({ call: fc.integer({ min: 1, max: CALLS_MAX }), isAfter: fc.boolean() }), {
  minLength: 1,
  maxLength: 5,
});

class Killed extends Error {}

function killedAt({ call, isAfter }: Kill): Pick<Deps, 'database' | 'store'> {
  let calls = 0;
  const meet = async <T>(work: () => PromiseLike<T>): Promise<T> => {
    calls += 1;
    if (calls > call || (calls === call && !isAfter)) throw new Killed();
    const result = await work();
    if (calls < call) return result;
    // The system closes the files of a process that is killed.
    if (result instanceof Readable) result.destroy();
    throw new Killed();
  };
  const { sql, prisma } = deps.database;
  const database = {
    prisma,
    sql: {
      $queryRaw: (...args: Parameters<typeof sql.$queryRaw>) => meet(() => sql.$queryRaw(...args)),
      $executeRaw: (...args: Parameters<typeof sql.$executeRaw>) => meet(() => sql.$executeRaw(...args)),
    },
    transaction: (...args: Parameters<Database['transaction']>) => meet(() => deps.database.transaction(...args)),
  };
  return {
    database: database as unknown as Database,
    store: {
      put: (name, object) => meet(() => store.put(name, object)),
      read: (name) => meet(() => store.read(name)),
      size: (name) => meet(() => store.size(name)),
      removeAll: (prefix) => meet(() => store.removeAll(prefix)),
      link: () => store.link(),
      linkOrigin: null,
    },
  };
}

const silence = (count: number): TestPacket[] =>
  Array.from({ length: count }, (_, n) => ({
    arrivalMs: n * 20,
    sequence: n + 1,
    timestamp: n * 960,
    payload: Buffer.from([0xf8, 0xff, 0xfe]),
  }));

test('wherever a recorder is killed, the next ones make the same files', async () => {
  const reached = { kills: 0, attempts: 0 };
  await fc.assert(
    fc.asyncProperty(KILLS, async (kills) => {
      await begin();
      await ship('a', capture('opus', silence(20)));
      await ship('b', capture('opus', silence(10)));
      await agentPassed();
      for (const kill of kills) {
        reached.attempts += 1;
        await work(killedAt(kill)).catch((error: unknown) => {
          if (!(error instanceof Killed)) throw error;
        });
        if ((await row()).status === 'processing') reached.kills += 1;
        await deps.database.sql.$executeRaw`
          UPDATE runtime_operations SET lease_expires_at = now() - interval '1 ms'
          WHERE id = ${operationId} AND lease_token IS NOT NULL`;
      }
      await work();
      expect(await row()).toMatchObject({ status: 'completed', gaps: [] });
      const made = (await files()).map(({ startMs, durationMs }) => [startMs, durationMs]);
      expect(made).toEqual([
        [1000, 400],
        [1000, 200],
      ]);
      for (const file of await files()) {
        expect(await store.size(recordingFileKey(recordingId, file))).toBe(file.bytes);
      }
      expect(existsSync(join(store.folder, 'captures', roomId))).toBe(false);
      const events = await deps.database.prisma.event.findMany({ where: { roomId }, orderBy: { sequence: 'asc' } });
      expect(events.map(({ type }) => type)).toEqual(['recording.stopped', 'recording.completed']);
    }),
    { numRuns: RUNS },
  );
  // Most kills come before the end.
  expect(reached.kills).toBeGreaterThan(reached.attempts / 3);
});
