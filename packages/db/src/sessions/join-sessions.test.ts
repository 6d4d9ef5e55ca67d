import { beforeAll, describe, expect, test } from '@jest/globals';
import { disconnectOne, endOne, joinOne } from '@callplane/testing';
import { endParticipantPresence, endRoomPresence } from './session-ends.js';
import { publishTracks } from './session-tracks.js';
import { NOON, startTestRooms, track, type TestRooms } from './sessions.testkit.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms();
});
const LATER = new Date(NOON.getTime() + 5000);
const count = (outcomes: { outcome: string }[], outcome: string) =>
  outcomes.filter((one) => one.outcome === outcome).length;

describe('a join', () => {
  test('starts the room the first time, and shows the participant in the snapshot', async () => {
    const roomId = await rooms.newRoom();
    const first = await rooms.enter(roomId, { mediaNodeId: 'm1', permissions: ['room:join', 'audio:publish'] });
    const withOne = await rooms.snapshot(roomId);
    const second = await rooms.enter(roomId, { mediaNodeId: 'm2' });
    const withBoth = await rooms.snapshot(roomId);
    expect(first).toMatchObject({ outcome: 'joined', connection: 1, deliveries: [] });
    expect(withOne).toMatchObject({
      tenant: { projectId: rooms.tenant.projectId, environmentId: rooms.tenant.environmentId },
      room: { id: roomId, status: 'active', startedAt: NOON },
      sequence: 2,
      mediaNodeId: 'm1',
      mediaGeneration: 1,
      sessions: [
        {
          sessionId: first.sessionId,
          participant: { id: first.participantId, name: 'Ada', connectedAt: NOON, leftAt: null, metadata: {} },
          startedAt: NOON,
          permissions: ['room:join', 'audio:publish'],
          instanceId: 'instance-1',
          connection: 1,
          disconnectedAt: null,
          tracks: [],
        },
      ],
    });
    // The room stays on its media server.
    expect(withBoth).toMatchObject({ sequence: 3, mediaNodeId: 'm1', mediaGeneration: 1 });
    expect(withBoth.sessions.map(({ sessionId }) => sessionId)).toEqual([first.sessionId, second.sessionId]);
    const events = await rooms.events(roomId);
    expect(events.map(({ type }) => type)).toEqual(['room.started', 'participant.joined', 'participant.joined']);
    expect(events[0]!.data).toMatchObject({ room: { status: 'active', startedAt: NOON.toISOString() } });
    expect(events[1]!.data).toMatchObject({
      room: { id: roomId, status: 'active' },
      participant: { id: first.participantId, joinedAt: NOON.toISOString(), leftAt: null },
      sessionId: first.sessionId,
    });
  });

  test('supersedes the live session of the same participant, and unpublishes its tracks first', async () => {
    const roomId = await rooms.newRoom();
    const old = await rooms.enter(roomId);
    await publishTracks(rooms.database, old.held, [track('a'), track('v', { kind: 'video', source: 'camera' })], NOON);
    const again = await joinOne(rooms.database, rooms.inputOf(roomId, old), LATER);
    expect(again).toMatchObject({ outcome: 'joined' });
    const events = (await rooms.events(roomId)).slice(4);
    expect(events.map(({ type, data }) => [type, data.track?.trackId ?? data.reason ?? null])).toEqual([
      ['track.unpublished', 'a'],
      ['track.unpublished', 'v'],
      ['participant.left', 'superseded'],
      ['participant.joined', null],
    ]);
    expect(events[2]!.data).toMatchObject({ sessionId: old.sessionId, participant: { leftAt: LATER.toISOString() } });
    expect(events[3]!.data).toMatchObject({ participant: { joinedAt: NOON.toISOString(), leftAt: null } });
    expect(await rooms.sessions(roomId)).toMatchObject([{ endReason: 'superseded' }, { endReason: null }]);
  });

  test('clears the time of leaving and the time since when the room was empty', async () => {
    const roomId = await rooms.newRoom();
    const { participantId, tokenId, held } = await rooms.enter(roomId);
    const room = () => rooms.database.prisma.room.findUniqueOrThrow({ where: { id: roomId } });
    const person = () => rooms.database.prisma.participant.findUniqueOrThrow({ where: { id: participantId } });
    expect(await endOne(rooms.database, held, 'left', LATER)).toBe(true);
    expect(await person()).toMatchObject({ connectedAt: NOON, leftAt: LATER });
    expect((await room()).emptySince).not.toBeNull();
    expect(await rooms.join(roomId, { participantId, tokenId })).toMatchObject({ outcome: 'joined' });
    expect(await person()).toMatchObject({ connectedAt: NOON, leftAt: null });
    expect((await room()).emptySince).toBeNull();
  });

  test('is refused without writing in a room that is full or ends, also while the connection of another one is lost', async () => {
    const roomId = await rooms.newRoom({ maxParticipants: 1 });
    const here = await rooms.enter(roomId);
    expect(await rooms.join(roomId, await rooms.invite(roomId))).toEqual({ outcome: 'capacity' });
    // The participant who occupies the place may join again, also while its connection is lost.
    expect(await disconnectOne(rooms.database, here.held)).toBe(true);
    expect(await rooms.join(roomId, await rooms.invite(roomId))).toEqual({ outcome: 'capacity' });
    expect(await rooms.join(roomId, here)).toMatchObject({ outcome: 'joined' });
    await rooms.end(roomId);
    expect(await rooms.join(roomId, here)).toEqual({ outcome: 'room_ended' });
    expect((await rooms.events(roomId)).map(({ type }) => type)).toEqual([
      'room.started',
      'participant.joined',
      'participant.left',
      'participant.joined',
    ]);
  });
});

describe('concurrent changes of a room', () => {
  test('end every session that joined before the end of the room, and refuse every later join', async () => {
    for (let round = 0; round < 10; round += 1) {
      const roomId = await rooms.newRoom();
      const invited = await Promise.all(Array.from({ length: 6 }, () => rooms.invite(roomId)));
      const ending = async () => {
        await new Promise((resolve) => setTimeout(resolve, round));
        await rooms.end(roomId);
        return rooms.database.transaction((tx) => endRoomPresence(tx, roomId, LATER));
      };
      const [ended, ...outcomes] = await Promise.all([ending(), ...invited.map((one) => rooms.join(roomId, one))]);
      expect(count(outcomes, 'joined') + count(outcomes, 'room_ended')).toBe(6);
      expect(ended.ended).toHaveLength(count(outcomes, 'joined'));
      expect((await rooms.sessions(roomId)).every(({ endReason }) => endReason === 'room_ended')).toBe(true);
    }
  });

  test('leave a participant out of the room after a concurrent join and removal, in either order', async () => {
    for (let round = 0; round < 10; round += 1) {
      const roomId = await rooms.newRoom();
      const invited = await rooms.invite(roomId);
      const removal = async () => {
        await new Promise((resolve) => setTimeout(resolve, round / 2));
        await rooms.remove(roomId, invited.participantId);
        return rooms.database.transaction((tx) => endParticipantPresence(tx, invited.participantId, 'removed', LATER));
      };
      const [{ outcome }, ended] = await Promise.all([rooms.join(roomId, invited), removal()]);
      expect(['joined', 'removed']).toContain(outcome);
      expect(ended).toHaveLength(outcome === 'joined' ? 1 : 0);
      expect((await rooms.sessions(roomId)).every(({ endReason }) => endReason === 'removed')).toBe(true);
      expect(await rooms.join(roomId, invited)).toEqual({ outcome: 'removed' });
    }
  });
});
