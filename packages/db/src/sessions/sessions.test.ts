import { beforeAll, describe, expect, test } from '@jest/globals';
import { disconnectOne, endOne, resumeOne, updateMetadataOf } from '@callplane/testing';
import { releaseSession } from './session-connection.js';
import { readSessionEnd } from './room-changes.js';
import { publishTracks, setTracksMuted } from './session-tracks.js';
import { hashOf, NOON, startTestRooms, track, type TestRooms } from './sessions.testkit.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms();
});
const LATER = new Date(NOON.getTime() + 5000);
const resume = (entered: { sessionId: string; secret: string }, instanceId = 'instance-2') =>
  resumeOne(rooms.database, {
    sessionId: entered.sessionId,
    resumeSecretHash: hashOf(entered.secret),
    instanceId,
  });
const snapshotOf = (roomId: string) => rooms.snapshot(roomId);
const typesOf = async (roomId: string) => (await rooms.events(roomId)).map(({ type }) => type);

describe('a session', () => {
  test('is resumed by another instance without a leave or a join', async () => {
    const roomId = await rooms.newRoom();
    const entered = await rooms.enter(roomId, { permissions: ['room:join', 'messages:send'] });
    expect(await disconnectOne(rooms.database, entered.held)).toBe(true);
    expect((await snapshotOf(roomId)).sessions[0]).toMatchObject({ disconnectedAt: expect.any(Date) });
    const resumed = await resume(entered);
    expect(resumed).toMatchObject({
      outcome: 'resumed',
      connection: 2,
      previousInstanceId: 'instance-1',
      tenant: rooms.tenant,
      roomId,
      participantId: entered.participantId,
      permissions: ['room:join', 'messages:send'],
    });
    expect((await snapshotOf(roomId)).sessions[0]).toMatchObject({
      sessionId: entered.sessionId,
      connection: 2,
      instanceId: 'instance-2',
      disconnectedAt: null,
    });
    expect(await typesOf(roomId)).toEqual(['room.started', 'participant.joined']);
  });

  test('rejects every write of a connection that is not its latest', async () => {
    const roomId = await rooms.newRoom();
    const entered = await rooms.enter(roomId);
    await publishTracks(rooms.database, entered.held, [track('a')], NOON);
    await resume(entered);
    const before = await snapshotOf(roomId);
    const old = entered.held;
    const { database } = rooms;
    expect(await disconnectOne(database, old)).toBe(false);
    expect(await releaseSession(database.sql, old)).toBe(false);
    expect(await endOne(database, old, 'left', NOON)).toBe(false);
    expect(await publishTracks(database, old, [track('b')], NOON)).toEqual({ written: false, deliveries: [] });
    expect(await publishTracks(database, old, [], NOON)).toEqual({ written: false, deliveries: [] });
    expect(await setTracksMuted(database, [{ held: old, trackId: 'a', muted: true }])).toEqual([false]);
    expect(await updateMetadataOf(database, old, { a: 1 })).toBe(false);
    expect(await snapshotOf(roomId)).toEqual(before);
  });

  test('is not resumed with a wrong secret, after its end, its removal, or the end of its room', async () => {
    const roomId = await rooms.newRoom();
    const [gone, removed, stays] = [await rooms.enter(roomId), await rooms.enter(roomId), await rooms.enter(roomId)];
    expect(await resume({ ...stays, secret: 'guessed' })).toEqual({ outcome: 'unknown' });
    expect(await resume({ sessionId: 'sess_unknown', secret: 'x' })).toEqual({ outcome: 'unknown' });
    await endOne(rooms.database, gone.held, 'left', NOON);
    expect(await resume(gone)).toEqual({ outcome: 'ended', reason: 'left' });
    expect(await resume({ ...gone, secret: 'guessed' })).toEqual({ outcome: 'unknown' });
    await rooms.remove(roomId, removed.participantId);
    expect(await resume(removed)).toEqual({ outcome: 'ended', reason: 'removed' });
    // Its clean-up has not run yet, but the snapshot does not contain it any more.
    expect((await snapshotOf(roomId)).sessions.map(({ sessionId }) => sessionId)).toEqual([stays.sessionId]);
    expect(await resume(stays)).toMatchObject({ outcome: 'resumed' });
    await rooms.end(roomId);
    expect(await resume(stays)).toEqual({ outcome: 'ended', reason: 'room_ended' });
    const ids = [gone.sessionId, removed.sessionId, stays.sessionId, 'sess_unknown'];
    const reasons = await Promise.all(ids.map((id) => readSessionEnd(rooms.database.sql, id)));
    expect(reasons).toEqual(['left', 'removed', 'room_ended', undefined]);
  });
});

describe('tracks', () => {
  test('write events when they are new and when they end, but not when their location changes', async () => {
    const roomId = await rooms.newRoom();
    const { held, participantId, sessionId } = await rooms.enter(roomId);
    const video = track('v', { kind: 'video', source: 'camera', mid: '1' });
    expect(await publishTracks(rooms.database, held, [track('a'), video], NOON)).toMatchObject({ written: true });
    const moved = [track('a', { feedId: 'feed-2', mid: '4', muted: true }), { ...video, feedId: 'feed-2' }];
    await publishTracks(rooms.database, held, moved, LATER);
    expect((await snapshotOf(roomId)).sessions[0]!.tracks).toEqual(moved);
    expect(await typesOf(roomId)).toHaveLength(4);
    // The same id with another source is another track.
    await publishTracks(rooms.database, held, [{ ...video, source: 'screen' }], LATER);
    await publishTracks(rooms.database, held, [], LATER);
    await publishTracks(rooms.database, held, [], LATER);
    const events = (await rooms.events(roomId)).slice(2);
    expect(events.map(({ type, data }) => [type, data.track.trackId, data.track.source])).toEqual([
      ['track.published', 'a', 'microphone'],
      ['track.published', 'v', 'camera'],
      ['track.unpublished', 'a', 'microphone'],
      ['track.unpublished', 'v', 'camera'],
      ['track.published', 'v', 'screen'],
      ['track.unpublished', 'v', 'screen'],
    ]);
    expect(events[0]!.data).toMatchObject({
      room: { id: roomId },
      participant: { id: participantId },
      sessionId,
      track: { trackId: 'a', kind: 'audio', source: 'microphone' },
    });
    expect(Object.keys(events[0]!.data.track)).toEqual(['trackId', 'kind', 'source']);
  });
});
