import { beforeAll, describe, expect, test } from '@jest/globals';
import { resumeOne } from '@callplane/testing';
import { endSessions } from './session-ends.js';
import {
  resumeSessions,
  markDisconnected,
  touchSessions,
  updateOwnMetadata,
  writeMedia,
} from './session-connection.js';
import { isFull, readRoomChanges, toSession, type RoomChanges } from './room-changes.js';
import { publishTracks, setTracksMuted } from './session-tracks.js';
import { placeRoom } from '../media/room-placement.js';
import { hashOf, NOON, startTestRooms, track, type TestRooms } from './sessions.testkit.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms({ poolMax: 12 });
});

async function changes(roomId: string, after: number | null): Promise<RoomChanges> {
  return (await readRoomChanges(rooms.database.sql, [{ roomId, after }])).get(roomId)!;
}
const idsOf = ({ sessions }: RoomChanges) => sessions.map(([sessionId]) => sessionId);

describe('each visible change increments the version and is found since the one before', () => {
  test('of one session, with its new state', async () => {
    const roomId = await rooms.newRoom();
    const ada = await rooms.enter(roomId);
    const bob = await rooms.enter(roomId);
    const { database } = rooms;
    let { version } = await changes(roomId, null);
    expect(version).toBe(2);
    const next = async (ids: string[]) => {
      const read = await changes(roomId, version);
      expect([read.after, idsOf(read)]).toEqual([version, ids]);
      expect(read.version).toBe(version + 1);
      version = read.version;
      return read.sessions[0]!;
    };
    await publishTracks(database, ada.held, [track('a')], NOON);
    expect(toSession(roomId, await next([ada.sessionId])).tracks).toMatchObject([{ trackId: 'a', muted: false }]);
    await setTracksMuted(database, [{ held: ada.held, trackId: 'a', muted: true }]);
    expect(toSession(roomId, await next([ada.sessionId])).tracks).toMatchObject([{ trackId: 'a', muted: true }]);
    const metadata = [
      { held: ada.held, metadata: { n: 1 } },
      { held: bob.held, metadata: { n: 2 } },
    ];
    expect(await updateOwnMetadata(database, roomId, metadata)).toEqual(new Set([ada.sessionId, bob.sessionId]));
    expect(toSession(roomId, await next([ada.sessionId, bob.sessionId])).participant.metadata).toEqual({ n: 1 });
    expect(await markDisconnected(database, [ada.held])).toEqual([ada.sessionId]);
    expect(toSession(roomId, await next([ada.sessionId])).disconnectedAt).not.toBeNull();
    // Nothing visible has changed the second time.
    expect(await markDisconnected(database, [{ ...ada.held, media: { node: 2 } }])).toEqual([]);
    const input = { sessionId: ada.sessionId, resumeSecretHash: hashOf(ada.secret), instanceId: 'instance-2' };
    const resumed = await resumeOne(database, input);
    expect(resumed).toMatchObject({
      outcome: 'resumed',
      connection: 2,
      media: { node: 2 },
      state: { version: version + 1 },
    });
    expect((await next([ada.sessionId])).slice(0, 6)).toEqual([
      ada.sessionId,
      ada.participantId,
      2,
      'instance-2',
      version,
      null,
    ]);
    await placeRoom(database.sql, roomId, await changes(roomId, version), 'm2');
    expect((await changes(roomId, version)).mediaNodeId).toBe('m2');
    version += 1;
    await rooms.remove(roomId, bob.participantId);
    expect((await next([bob.sessionId])).at(5)).toBe('removed');
    expect(await touchSessions(database.sql, bob.participantId)).toBe(version + 1);
    version += 1;
    await endSessions(database, roomId, [{ sessionId: ada.sessionId, connection: 2 }], 'left', NOON);
    expect((await next([ada.sessionId])).at(5)).toBe('left');
    await rooms.end(roomId);
    expect(await changes(roomId, version)).toMatchObject({ room: { status: 'ending' }, version: version + 1 });
  });

  test('but where its media is, which others do not see', async () => {
    const roomId = await rooms.newRoom();
    const ada = await rooms.enter(roomId);
    await writeMedia(rooms.database.sql, [{ held: ada.held, media: { node: 3 } }]);
    await writeMedia(rooms.database.sql, [{ held: { ...ada.held, connection: 7 }, media: { node: 4 } }]);
    const row = await rooms.database.prisma.participantSession.findUniqueOrThrow({ where: { id: ada.sessionId } });
    expect(row.media).toEqual({ node: 3 });
    expect(await changes(roomId, 1)).toMatchObject({ version: 1, sessions: [] });
  });
});

describe('a read', () => {
  test('is complete without a version, and after a version that the database has lost', async () => {
    const roomId = await rooms.newRoom();
    const [ada, bob] = [await rooms.enter(roomId), await rooms.enter(roomId)];
    await endSessions(rooms.database, roomId, [ada.held], 'left', NOON);
    for (const after of [null, 99]) {
      const read = await changes(roomId, after);
      expect([read.after, idsOf(read)]).toEqual([null, [bob.sessionId]]);
    }
    expect(idsOf(await changes(roomId, 0))).toEqual([ada.sessionId, bob.sessionId]);
  });

  test('of a paged room has short tuples for viewers only', async () => {
    const roomId = await rooms.newRoom();
    const [viewer, publisher, speaker] = [
      await rooms.enter(roomId),
      await rooms.enter(roomId),
      await rooms.enter(roomId),
    ];
    await publishTracks(rooms.database, publisher.held, [track('a')], NOON);
    await updateOwnMetadata(rooms.database, roomId, [{ held: speaker.held, metadata: { seat: 1 } }]);
    await rooms.sql(`UPDATE rooms SET roster_paged = true WHERE id = '${roomId}'`);
    for (const after of [null, 0]) {
      const { sessions, rosterPaged } = await changes(roomId, after);
      expect(rosterPaged).toBe(true);
      expect(sessions.map((tuple) => [tuple[0], isFull(tuple)])).toEqual([
        [viewer.sessionId, false],
        [publisher.sessionId, true],
        [speaker.sessionId, true],
      ]);
    }
  });
});

test('writers of all kinds that run at once neither deadlock nor lose a version', async () => {
  const { database } = rooms;
  const roomId = await rooms.newRoom({ maxParticipants: 1000 });
  const entered = await Promise.all(Array.from({ length: 12 }, () => rooms.enter(roomId)));
  const connectionOf = new Map(entered.map(({ sessionId }) => [sessionId, 1]));
  // Any writer may have another order of the sessions.
  const some = (seed: number) =>
    entered
      .filter((_, n) => (n * 7 + seed) % 3 !== 0)
      .sort((a, b) => (a.sessionId < b.sessionId === (seed % 2 === 0) ? -1 : 1));
  const heldOf = (seed: number) =>
    some(seed).map(({ sessionId }) => ({ sessionId, connection: connectionOf.get(sessionId)! }));
  const kinds: ((seed: number) => Promise<unknown>)[] = [
    (seed) => markDisconnected(database, heldOf(seed)),
    (seed) =>
      updateOwnMetadata(
        database,
        roomId,
        heldOf(seed).map((held) => ({ held, metadata: { seed } })),
      ),
    (seed) =>
      setTracksMuted(
        database,
        heldOf(seed).map((held) => ({ held, trackId: 'a', muted: seed % 2 === 0 })),
      ),
    (seed) =>
      writeMedia(
        database.sql,
        heldOf(seed).map((held) => ({ held, media: { seed } })),
      ),
    (seed) => publishTracks(database, heldOf(seed)[0]!, [track('a')], NOON),
    (seed) => touchSessions(database.sql, some(seed)[0]!.participantId),
    async (seed) => {
      const inputs = some(seed).map(({ sessionId, secret }) => ({
        sessionId,
        resumeSecretHash: hashOf(secret),
        instanceId: 'i2',
      }));
      const outcomes = await resumeSessions(database, inputs, { intervalMs: 0, aheadMs: 0 });
      inputs.forEach(({ sessionId }, n) => {
        const outcome = outcomes[n]!;
        if (outcome.outcome !== 'resumed') throw new Error(outcome.outcome);
        connectionOf.set(sessionId, Math.max(outcome.connection, connectionOf.get(sessionId)!));
      });
    },
    async () => {
      const invited = await Promise.all([rooms.invite(roomId), rooms.invite(roomId)]);
      for (const one of invited) expect(await rooms.join(roomId, one)).toMatchObject({ outcome: 'joined' });
    },
  ];
  let known = (await changes(roomId, null)).version;
  for (let wave = 0; wave < 12; wave += 1) {
    // An error, such as a deadlock, fails the test.
    await Promise.all(kinds.map((act, n) => act(wave + n)));
    const [since, all] = [await changes(roomId, known), await changes(roomId, null)];
    const found = new Map(since.sessions.map((tuple) => [tuple[0], tuple]));
    for (const tuple of all.sessions) {
      if (tuple[4] > known) expect(found.get(tuple[0])).toEqual(tuple);
    }
    expect(Math.max(...all.sessions.map((tuple) => tuple[4]))).toBe(all.version);
    known = all.version;
  }
});
