import { describe, expect, test } from '@jest/globals';
import { ATTEMPTS_PER_RUN, decideReplay, isExhausted, isOpen, REPLAYS_MAX, ROOM_STATUSES } from '@callplane/core';
import { createTestDatabase, stopAtEnd } from '@callplane/testing';
import { Database } from './client/database.js';
import { Prisma } from './generated/client.js';
import { isExhausted as isExhaustedInSql } from './operations/operation.sql.js';
import { isRoomOpen } from './rooms/room.sql.js';
import { hasReplaysLeft } from './webhooks/webhooks.sql.js';

/** Rules that core decides in TypeScript and statements decide in SQL, compared over all states. */

const database = new Database({ url: (await createTestDatabase()).url, poolMax: 1 });
stopAtEnd(() => database.close());

/** The value of a condition for each row of a table. */
async function each(condition: Prisma.Sql, table: Prisma.Sql): Promise<boolean[]> {
  const rows = await database.sql.$queryRaw<{ holds: boolean }[]>`SELECT ${condition} AS holds FROM ${table}`;
  return rows.map(({ holds }) => holds);
}

const upTo = (max: number) => Array.from({ length: max + 1 }, (_, n) => n);

describe('SQL and core agree', () => {
  test('on which rooms are open', async () => {
    const rooms = Prisma.sql`unnest(${[...ROOM_STATUSES]}::text[]) AS rooms (status)`;
    expect(await each(isRoomOpen, rooms)).toEqual(ROOM_STATUSES.map(isOpen));
  });

  test('on which runs are exhausted', async () => {
    const runs = upTo(ATTEMPTS_PER_RUN + 1);
    const table = Prisma.sql`unnest(${runs}::int[]) AS runs (run_attempts)`;
    expect(await each(isExhaustedInSql, table)).toEqual(runs.map(isExhausted));
  });

  test('on which deliveries have replays left', async () => {
    const counts = upTo(REPLAYS_MAX + 1);
    const table = Prisma.sql`unnest(${counts}::int[]) AS deliveries (replay_count)`;
    const finished = { status: 'failed' as const, isErased: false, isEnabled: true };
    const isAllowed = (count: number) =>
      decideReplay({ ...finished, replayCount: count, expectedReplayCount: count }) === null;
    expect(await each(hasReplaysLeft, table)).toEqual(counts.map(isAllowed));
  });
});
