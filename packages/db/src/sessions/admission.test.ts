import { beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { paceTimes } from '@callplane/core';
import { joinOne, resumeOne } from '@callplane/testing';
import type { Database, TypedSql } from '../client/database.js';
import { joinSessions } from './join-sessions.js';
import { hashOf, NOON, startTestRooms, type Invited, type TestRooms } from './sessions.testkit.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms({ poolMax: 20 });
});

/** Slow enough that no token returns during a test. */
const slow = (burst: number) => paceTimes({ perMinute: 1, burst });
const SETTINGS = { pace: paceTimes({ perMinute: 0, burst: 1 }), rosterFullMax: 100 };

/** Joins, with `meanwhile` after the statement that admits the joins, and counts statements and transactions. */
async function watchJoin(
  roomId: string,
  invited: Invited[],
  meanwhile: () => Promise<unknown> = async () => undefined,
) {
  const { database } = rooms;
  const made = { statements: 0, transactions: 0, numbers: [] as number[] };
  const sql: TypedSql = {
    ...database.sql,
    $queryRaw: async <T>(...query: Parameters<TypedSql['$queryRaw']>) => {
      made.statements += 1;
      const rows = await database.sql.$queryRaw<T>(...query);
      if (made.statements > 1) return rows;
      made.numbers = (rows as { latestJoin: number }[]).map(({ latestJoin }) => latestJoin);
      await meanwhile();
      return rows;
    },
  };
  const transaction: Database['transaction'] = (work) => {
    made.transactions += 1;
    return database.transaction(work);
  };
  const inputs = invited.map((one) => rooms.inputOf(roomId, one));
  const outcomes = await joinSessions({ sql, transaction } as unknown as Database, roomId, inputs, NOON, SETTINGS);
  return { outcomes, names: outcomes.map(({ outcome }) => outcome), ...made };
}

describe('a join', () => {
  test('takes two round trips, also with others and into a room with sessions', async () => {
    const roomId = await rooms.newRoom();
    for (const count of [1, 1, 3]) {
      const invited = await Promise.all(Array.from({ length: count }, () => rooms.invite(roomId)));
      const { names, statements, transactions } = await watchJoin(roomId, invited);
      expect(names).toEqual(invited.map(() => 'joined'));
      expect({ statements, transactions }).toEqual({ statements: 2, transactions: 0 });
    }
  });

  test.each(['the room', 'a participant', 'the number of live sessions'])(
    'is decided again under locks if another transaction changes %s between its read and its write',
    async (what) => {
      const roomId = await rooms.newRoom({ maxParticipants: 2 });
      const invited = [await rooms.invite(roomId), await rooms.invite(roomId)];
      const other = await rooms.invite(roomId);
      const changes: Record<string, () => Promise<unknown>> = {
        'the room': () => rooms.sql(`UPDATE rooms SET name = 'New name' WHERE id = '${roomId}'`),
        'a participant': () =>
          rooms.sql(`UPDATE participants SET name = 'New name' WHERE id = '${invited[0]!.participantId}'`),
        'the number of live sessions': () => rooms.join(roomId, other),
      };
      const { names, transactions } = await watchJoin(roomId, invited, changes[what]);
      expect(transactions).toBe(1);
      expect(names).toEqual(what === 'the number of live sessions' ? ['joined', 'capacity'] : ['joined', 'joined']);
      const told = JSON.stringify((await rooms.events(roomId)).map(({ data }) => data));
      expect(told.includes('New name')).toBe(what !== 'the number of live sessions');
    },
  );

  test('writes nothing if its client disconnects before the commit, and the older session continues', async () => {
    const roomId = await rooms.newRoom();
    const ada = await rooms.enter(roomId);
    const before = await rooms.events(roomId);
    let asked = 0;
    // The client is gone at the last check: the join has written everything by then and is rolled back.
    const outcome = await joinOne(rooms.database, rooms.inputOf(roomId, ada, { isWaiting: () => ++asked < 2 }), NOON);
    expect([outcome, asked]).toEqual([{ outcome: 'abandoned' }, 2]);
    expect(await rooms.events(roomId)).toEqual(before);
    expect((await rooms.sessions(roomId)).map(({ id, endReason }) => [id, endReason])).toEqual([[ada.sessionId, null]]);
  });
});

describe('the order of the joins of one participant', () => {
  test.each(['was admitted', 'was written'])('refuses an earlier one once a later one %s', async (what) => {
    const roomId = await rooms.newRoom();
    const ada = await rooms.invite(roomId);
    const later = {
      'was admitted': () =>
        rooms.sql(`UPDATE participants SET join_count = join_count + 1 WHERE id = '${ada.participantId}'`),
      'was written': () => rooms.join(roomId, ada),
    }[what]!;
    expect((await watchJoin(roomId, [ada], later)).names).toEqual(['overtaken']);
    expect(await rooms.sessions(roomId)).toHaveLength(what === 'was written' ? 1 : 0);
    expect((await rooms.events(roomId)).map(({ type }) => type)).toEqual(
      what === 'was written' ? ['room.started', 'participant.joined'] : [],
    );
  });

  test('lets the latest one have the session, in every interleaving of admissions and writes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 4 }), { minLength: 2, maxLength: 6 }), async (queriesBetween) => {
        const roomId = await rooms.newRoom();
        const ada = await rooms.invite(roomId);
        const all = await Promise.all(
          queriesBetween.map((queries) =>
            watchJoin(roomId, [ada], async () => {
              // Queries run one after another, so they change the order of the joins in each run.
              for (let n = 0; n < queries; n++) await rooms.database.ping();
            }),
          ),
        );
        const numbers = new Map(
          all.flatMap(({ numbers, outcomes: [outcome] }) =>
            outcome?.outcome === 'joined' ? [[outcome.sessionId, numbers[0]!]] : [],
          ),
        );
        const live = (await rooms.sessions(roomId)).filter(({ endReason }) => endReason === null);
        expect(live.map(({ id }) => numbers.get(id))).toEqual([queriesBetween.length]);
        const events = await rooms.events(roomId);
        expect(events.filter(({ type }) => type === 'participant.joined')).toHaveLength(numbers.size);
        const numberOfEvent = (index: number) => numbers.get(events[index]!.data.sessionId)!;
        for (const [index, { data }] of events.entries()) {
          // The join that supersedes a session writes the next event.
          if (data.reason === 'superseded') expect(numberOfEvent(index)).toBeLessThan(numberOfEvent(index + 1));
        }
      }),
      { numRuns: 25 },
    );
  });
});

describe('the pace', () => {
  test('of joins admits exactly the burst out of 40 at once, and reports the wait to the others', async () => {
    const roomId = await rooms.newRoom();
    const ada = rooms.inputOf(roomId, await rooms.invite(roomId));
    const join = (input = ada) => joinOne(rooms.database, input, NOON, slow(10));
    const all = await Promise.all(Array.from({ length: 40 }, () => join()));
    expect(all.filter(({ outcome }) => outcome !== 'too_many')).toHaveLength(10);
    const refused = await join();
    expect(refused).toMatchObject({ outcome: 'too_many' });
    const { waitMs } = refused as { waitMs: number };
    expect(waitMs).toBeGreaterThan(1000);
    expect(waitMs).toBeLessThanOrEqual(60_000);
    // Another participant has its own bucket.
    expect(await join(rooms.inputOf(roomId, await rooms.invite(roomId)))).toMatchObject({ outcome: 'joined' });
  });

  test('of resumptions lets a session resume as often as its burst, and leaves its connection when it refuses', async () => {
    const roomId = await rooms.newRoom();
    const ada = await rooms.enter(roomId);
    const input = { sessionId: ada.sessionId, resumeSecretHash: hashOf(ada.secret), instanceId: 'i2' };
    const all = await Promise.all(Array.from({ length: 8 }, () => resumeOne(rooms.database, input, slow(3))));
    expect(all.filter(({ outcome }) => outcome === 'resumed')).toHaveLength(3);
    const refused = all.find(({ outcome }) => outcome === 'too_many');
    expect(refused).toMatchObject({ waitMs: expect.any(Number) });
    expect((await rooms.snapshot(roomId)).sessions[0]).toMatchObject({ connection: 4 });
    // The response to a wrong secret does not reveal the limit.
    const wrong = { ...input, resumeSecretHash: hashOf('wrong') };
    expect(await resumeOne(rooms.database, wrong, slow(3))).toEqual({ outcome: 'unknown' });
  });
});
