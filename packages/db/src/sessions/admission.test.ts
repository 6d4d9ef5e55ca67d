import { beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { newId, paceTimes } from '@callplane/core';
import { admitOne, eventually, joinOne, resumeOne } from '@callplane/testing';
import { hashOf, NOON, startTestRooms, type Invited, type TestRooms } from './sessions.testkit.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms({ poolMax: 20 });
});

const UNPACED = paceTimes({ perMinute: 0, burst: 1 });
/** Slow enough that no token returns during a test. */
const SLOW = paceTimes({ perMinute: 1, burst: 10 });

const admit = (roomId: string, { participantId }: Invited, pace = UNPACED) =>
  admitOne(rooms.database.sql, { tenant: rooms.tenant, roomId, participantId }, pace);

async function numberOf(roomId: string, invited: Invited): Promise<number> {
  const admission = await admit(roomId, invited);
  if (admission.outcome !== 'admitted') throw new Error(admission.outcome);
  return admission.number;
}

describe('admission of joins', () => {
  test('numbers the joins of a participant from 1, without an upper limit when the pace is unlimited', async () => {
    const roomId = await rooms.newRoom();
    const [ada, bob] = [await rooms.invite(roomId), await rooms.invite(roomId)];
    expect([await numberOf(roomId, ada), await numberOf(roomId, ada), await numberOf(roomId, bob)]).toEqual([1, 2, 1]);
    const many = await Promise.all(Array.from({ length: 50 }, () => numberOf(roomId, ada)));
    expect(many.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n + 3));
  });

  test('admits exactly the burst out of 40 concurrent joins, and reports the wait to the others', async () => {
    const roomId = await rooms.newRoom();
    const ada = await rooms.invite(roomId);
    const all = await Promise.all(Array.from({ length: 40 }, () => admit(roomId, ada, SLOW)));
    expect(all.filter(({ outcome }) => outcome === 'admitted')).toHaveLength(10);
    const refused = await admit(roomId, ada, SLOW);
    expect(refused).toMatchObject({ outcome: 'too_many' });
    const { waitMs } = refused as { waitMs: number };
    expect(waitMs).toBeGreaterThan(1000);
    expect(waitMs).toBeLessThanOrEqual(60_000);
    // Another participant has its own bucket.
    expect(await admit(roomId, await rooms.invite(roomId), SLOW)).toMatchObject({ outcome: 'admitted' });
  });

  test('finds no participant of another room or environment', async () => {
    const [roomId, other] = [await rooms.newRoom(), await rooms.newRoom()];
    const ada = await rooms.invite(roomId);
    expect(await admit(other, ada)).toEqual({ outcome: 'not_found' });
    const foreign = { ...rooms.tenant, environmentId: newId('environment') };
    const request = { tenant: foreign, roomId, participantId: ada.participantId };
    expect(await admitOne(rooms.database.sql, request, UNPACED)).toEqual({ outcome: 'not_found' });
  });
});

describe('the order of joins', () => {
  test('rejects an earlier join that comes late, without writing anything or superseding the later one', async () => {
    const roomId = await rooms.newRoom();
    const ada = await rooms.invite(roomId);
    const [first, second] = [await numberOf(roomId, ada), await numberOf(roomId, ada)];
    const joined = await rooms.join(roomId, ada, { joinNumber: second });
    expect(joined).toMatchObject({ outcome: 'joined' });
    expect(await rooms.join(roomId, ada, { joinNumber: first })).toEqual({ outcome: 'overtaken' });
    expect((await rooms.events(roomId)).map(({ type }) => type)).toEqual(['room.started', 'participant.joined']);
    expect(await rooms.sessions(roomId)).toHaveLength(1);
  });

  test('rejects an earlier join once a later one was admitted, so that the participant joins once', async () => {
    const roomId = await rooms.newRoom();
    const ada = await rooms.invite(roomId);
    const [first, second] = [await numberOf(roomId, ada), await numberOf(roomId, ada)];
    expect(await rooms.join(roomId, ada, { joinNumber: first })).toEqual({ outcome: 'overtaken' });
    expect(await rooms.join(roomId, ada, { joinNumber: second })).toMatchObject({ outcome: 'joined' });
    expect(await rooms.sessions(roomId)).toHaveLength(1);
  });

  test('makes a later join wait for an earlier one that is committing, and supersede it', async () => {
    const roomId = await rooms.newRoom();
    const ada = await rooms.invite(roomId);
    const first = await numberOf(roomId, ada);
    const held = await holdRoom(roomId);
    const earlier = rooms.join(roomId, ada, { joinNumber: first });
    await eventually(() => lockWaiters().then((count) => count >= 1));
    // The earlier join has locked the participant, so the later join gets its number only after the earlier one has
    // finished.
    const later = numberOf(roomId, ada).then((joinNumber) => rooms.join(roomId, ada, { joinNumber }));
    await eventually(() => lockWaiters().then((count) => count >= 2));
    await held.release();
    const sessionId = (await earlier) as { sessionId: string };
    expect(await later).toMatchObject({ outcome: 'joined' });
    const [superseded, live] = await rooms.sessions(roomId);
    expect([superseded, live]).toMatchObject([
      { id: sessionId.sessionId, endReason: 'superseded' },
      { endReason: null },
    ]);
  });

  test('supersedes only earlier joins and keeps the latest one, in every interleaving of admissions and joins', async () => {
    const pauses = fc.array(fc.nat({ max: 4 }), { minLength: 2, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(pauses, async (queriesBetween) => {
        const roomId = await rooms.newRoom();
        const ada = await rooms.invite(roomId);
        const all = await Promise.all(
          queriesBetween.map(async (queries) => {
            const joinNumber = await numberOf(roomId, ada);
            // Queries run one after another, so they change the order of the joins in each run.
            for (let n = 0; n < queries; n++) await rooms.database.ping();
            return { joinNumber, outcome: await rooms.join(roomId, ada, { joinNumber }) };
          }),
        );
        const joined = all.flatMap(({ joinNumber, outcome }) =>
          outcome.outcome === 'joined' ? [{ joinNumber, ...outcome }] : [],
        );
        const numbers = new Map(joined.map(({ sessionId, joinNumber }) => [sessionId, joinNumber]));
        const live = (await rooms.sessions(roomId)).filter(({ endReason }) => endReason === null);
        expect(live.map(({ id }) => numbers.get(id))).toEqual([queriesBetween.length]);
        const events = await rooms.events(roomId);
        expect(events.filter(({ type }) => type === 'participant.joined')).toHaveLength(joined.length);
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

describe('a client that disconnects before the commit of its join', () => {
  test('has written nothing, and its older session continues', async () => {
    const roomId = await rooms.newRoom();
    const ada = await rooms.enter(roomId);
    const before = await rooms.events(roomId);
    let asked = 0;
    // The client is gone at the last check: the join has written everything by then and is rolled back.
    const outcome = await joinOne(rooms.database, rooms.inputOf(roomId, ada, { isWanted: () => ++asked < 2 }), NOON);
    expect([outcome, asked]).toEqual([{ outcome: 'abandoned' }, 2]);
    expect(await rooms.events(roomId)).toEqual(before);
    expect((await rooms.sessions(roomId)).map(({ id, endReason }) => [id, endReason])).toEqual([[ada.sessionId, null]]);
  });
});

describe('the pace of resumptions', () => {
  test('lets a session resume as often as its burst allows, and leaves its connection unchanged when it refuses', async () => {
    const roomId = await rooms.newRoom();
    const ada = await rooms.enter(roomId);
    const input = { sessionId: ada.sessionId, resumeSecretHash: hashOf(ada.secret), instanceId: 'i2' };
    const pace = paceTimes({ perMinute: 1, burst: 3 });
    const all = await Promise.all(Array.from({ length: 8 }, () => resumeOne(rooms.database, { ...input, pace })));
    expect(all.filter(({ outcome }) => outcome === 'resumed')).toHaveLength(3);
    const refused = all.find(({ outcome }) => outcome === 'too_many');
    expect(refused).toMatchObject({ waitMs: expect.any(Number) });
    expect((await rooms.snapshot(roomId)).sessions[0]).toMatchObject({ connection: 4 });
    // The response to a wrong secret does not reveal the limit.
    const wrong = { ...input, resumeSecretHash: hashOf('wrong'), pace };
    expect(await resumeOne(rooms.database, wrong)).toEqual({ outcome: 'unknown' });
  });
});

/** Locks the room's row in another transaction. */
async function holdRoom(roomId: string): Promise<{ release(): Promise<void> }> {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let over: Promise<unknown> = Promise.resolve();
  await new Promise<void>((resolve, reject) => {
    over = rooms.database
      .transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1 FROM rooms WHERE id = ${roomId} FOR UPDATE`;
        resolve();
        await released;
      })
      .catch(reject);
  });
  return {
    async release() {
      release();
      await over;
    },
  };
}

async function lockWaiters(): Promise<number> {
  const [row] = await rooms.database.sql.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return row!.count;
}
