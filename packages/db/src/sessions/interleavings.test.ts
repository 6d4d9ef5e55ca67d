import { beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { disconnectOne, endOne, resumeOne, updateMetadataOf } from '@callplane/testing';
import { findRoom } from '../rooms/rooms.repository.js';
import { endParticipantPresence, endRoomPresence, writeSessionsEnded } from './session-ends.js';
import { sweepLostSessions } from './lost-sessions.js';
import { publishTracks } from './session-tracks.js';
import {
  hashOf,
  NOON,
  startTestRooms,
  track,
  type Invited,
  type StoredEvent,
  type TestRooms,
} from './sessions.testkit.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms({ poolMax: 12 });
});

const CAPACITY = 3;
const PEOPLE = 5;
const KINDS = [
  'join',
  'leave',
  'disconnect',
  'resume',
  'publish',
  'unpublish',
  'metadata',
  'sweep',
  'remove',
  'end',
] as const;
const step = fc.record({
  // Ending the room and removing participants are rare; otherwise few other steps would take effect.
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...KINDS.slice(0, 8)) },
    { weight: 1, arbitrary: fc.constantFrom(...KINDS.slice(8)) },
  ),
  who: fc.nat({ max: PEOPLE - 1 }),
});

test('any concurrent steps leave one join and one leave per session, gap-free sequence numbers, and no room above its capacity', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 8 }),
      async (waves) => {
        const roomId = await rooms.newRoom({ maxParticipants: CAPACITY });
        const people = await Promise.all(Array.from({ length: PEOPLE }, () => rooms.invite(roomId)));
        /** The session and connection that each participant knows. */
        const held = new Map<string, { sessionId: string; connection: number }>();
        for (const wave of waves) {
          // The steps of a wave run concurrently; any error, such as a deadlock, fails the property.
          await Promise.all(wave.map(({ kind, who }) => act(roomId, people[who]!, kind, held)));
          expect(
            await rooms.database.prisma.participantSession.count({ where: { roomId, endedAt: null } }),
          ).toBeLessThanOrEqual(CAPACITY);
        }
        await check(roomId);
      },
    ),
    { numRuns: 40, endOnFailure: true },
  );
});

async function act(
  roomId: string,
  person: Invited,
  kind: (typeof KINDS)[number],
  held: Map<string, { sessionId: string; connection: number }>,
): Promise<void> {
  const { database, tenant } = rooms;
  const mine = held.get(person.participantId);
  const hash = hashOf(person.participantId);
  switch (kind) {
    case 'join': {
      const joined = await rooms.join(roomId, person, { resumeSecretHash: hash });
      if (joined.outcome === 'joined') held.set(person.participantId, joined);
      return;
    }
    case 'resume': {
      if (mine === undefined) return;
      const resumed = await resumeOne(database, {
        sessionId: mine.sessionId,
        resumeSecretHash: hash,
        instanceId: 'i2',
      });
      if (resumed.outcome === 'resumed') held.set(person.participantId, { ...mine, connection: resumed.connection });
      return;
    }
    case 'leave':
      if (mine !== undefined) await endOne(database, mine, 'left', NOON);
      return;
    case 'disconnect':
      if (mine !== undefined) await disconnectOne(database, mine);
      return;
    case 'publish':
    case 'unpublish':
      if (mine !== undefined)
        await publishTracks(database, mine, kind === 'publish' ? [track('a'), track('b')] : [], NOON);
      return;
    case 'metadata':
      if (mine !== undefined) await updateMetadataOf(database, mine, { at: kind });
      return;
    case 'sweep':
      await sweepLostSessions(database, { graceMs: 0, instanceDeadMs: 8000, limit: 100 }, NOON);
      return;
    case 'remove':
      await rooms.remove(roomId, person.participantId);
      await database.transaction(async (tx) => {
        const ended = await endParticipantPresence(tx, person.participantId, 'removed', NOON);
        await writeSessionsEnded(tx, tenant, (await findRoom(tx, tenant, roomId))!, ended, 'removed', NOON);
      });
      return;
    case 'end':
      await rooms.end(roomId);
      await database.transaction(async (tx) => {
        const { ended } = await endRoomPresence(tx, roomId, NOON);
        await writeSessionsEnded(tx, tenant, (await findRoom(tx, tenant, roomId))!, ended, 'room_ended', NOON);
      });
      await rooms.sql(`UPDATE rooms SET status = 'ended', ended_at = '${NOON.toISOString()}' WHERE id = '${roomId}'`);
  }
}

async function check(roomId: string): Promise<void> {
  const events = await rooms.events(roomId);
  const sessions = await rooms.sessions(roomId);
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
  expect(events.filter(({ type }) => type === 'room.started')).toHaveLength(sessions.length === 0 ? 0 : 1);
  if (sessions.length > 0) expect(events[0]!.type).toBe('room.started');
  for (const { id, endReason } of sessions) {
    const own = events.filter(({ data }) => data.sessionId === id);
    expect(own.filter(({ type }) => type === 'participant.joined')).toHaveLength(1);
    expect(own[0]!.type).toBe('participant.joined');
    const left = own.filter(({ type }) => type === 'participant.left');
    expect(left.map(({ data }) => data.reason)).toEqual(endReason === null ? [] : [endReason]);
    if (endReason !== null) expect(own.at(-1)).toBe(left[0]);
    const open = openTracks(own);
    const stored = await rooms.database.prisma.sessionTrack.findMany({ where: { sessionId: id } });
    expect(stored.map(({ trackId }) => trackId).sort()).toEqual([...open].sort());
    if (endReason !== null) expect(open.size).toBe(0);
  }
  expect(events.filter(({ type }) => type === 'participant.joined')).toHaveLength(sessions.length);
  const people = await rooms.database.prisma.participant.findMany({ where: { roomId, connectedAt: { not: null } } });
  for (const { id, leftAt } of people) {
    const lives = sessions.some(({ participantId, endReason }) => participantId === id && endReason === null);
    expect(leftAt === null).toBe(lives);
  }
  const room = await rooms.database.prisma.room.findUniqueOrThrow({ where: { id: roomId } });
  expect(room.lastSequence).toBe(events.length);
  if (room.status === 'active') {
    expect(room.emptySince !== null).toBe(sessions.every(({ endReason }) => endReason !== null));
  }
}

/** Ids of the tracks that are still published; fails if a track is published or unpublished twice in a row. */
function openTracks(events: readonly StoredEvent[]): Set<string> {
  const open = new Set<string>();
  for (const { type, data } of events) {
    if (type === 'track.published') {
      expect(open.has(data.track.trackId)).toBe(false);
      open.add(data.track.trackId);
    }
    if (type === 'track.unpublished') expect(open.delete(data.track.trackId)).toBe(true);
  }
  return open;
}
