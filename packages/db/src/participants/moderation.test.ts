import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { PERMISSIONS, type Permission } from '@callplane/core';
import { endOne, updateMetadataOf } from '@callplane/testing';
import { listSessions } from '../sessions/session-history.js';
import { publishTracks, setTracksMuted } from '../sessions/session-tracks.js';
import { NOON, startTestRooms, track, type TestRooms } from '../sessions/sessions.testkit.js';
import { muteTrack, updateParticipant, type ParticipantPatch } from './moderation.js';

let rooms: TestRooms;
let roomId: string;
beforeAll(async () => {
  rooms = await startTestRooms();
});
beforeEach(async () => {
  roomId = await rooms.newRoom();
});

const LATER = new Date(NOON.getTime() + 60_000);
const enter = () => rooms.enter(roomId, { permissions: [...PERMISSIONS] });
const update = (participantId: string, patch: ParticipantPatch, tenant = rooms.tenant) =>
  updateParticipant(rooms.database, tenant, roomId, participantId, patch, LATER);
const mute = (participantId: string, trackId: string) =>
  muteTrack(rooms.database, rooms.tenant, roomId, participantId, trackId, LATER);
const types = async () => (await rooms.events(roomId)).map(({ type }) => type);
const without = (...withdrawn: Permission[]) => PERMISSIONS.filter((permission) => !withdrawn.includes(permission));

describe('a change of a participant', () => {
  test('works before the first join and after the session, and holds for later joins with the same token', async () => {
    const ada = await rooms.invite(roomId);
    expect(await update(ada.participantId, { permissions: ['room:join', 'messages:send'] })).toMatchObject({
      outcome: 'updated',
      version: null,
      permissions: ['room:join', 'messages:send'],
    });
    const joined = await rooms.join(roomId, ada, { permissions: [...PERMISSIONS] });
    if (joined.outcome !== 'joined') throw new Error(joined.outcome);
    expect(joined.state.permissions).toEqual(['room:join', 'messages:send']);
    expect((await rooms.snapshot(roomId)).sessions).toMatchObject([{ permissions: ['room:join', 'messages:send'] }]);
    await endOne(rooms.database, { sessionId: joined.sessionId, connection: 1 }, 'left', LATER);
    expect(await update(ada.participantId, { permissions: ['room:join'] })).toMatchObject({ version: null });
    expect(await rooms.join(roomId, ada)).toMatchObject({ state: { permissions: ['room:join'] } });
    expect((await rooms.events(roomId)).filter(({ type }) => type === 'participant.updated')).toMatchObject([
      { data: { sessionId: null } },
      { data: { sessionId: null } },
    ]);
  });
});

describe('a withdrawn permission', () => {
  test('unpublishes the tracks that need it, and no others', async () => {
    const ada = await enter();
    await publishTracks(
      rooms.database,
      ada.held,
      [track('mic'), track('cam', { kind: 'video', source: 'camera' })],
      NOON,
    );
    await update(ada.participantId, { permissions: without('audio:publish') });
    const { sessions } = await rooms.snapshot(roomId);
    expect(sessions[0]!.tracks.map(({ trackId }) => trackId)).toEqual(['cam']);
    expect((await types()).slice(-2)).toEqual(['track.unpublished', 'participant.updated']);
    expect(
      await listSessions(rooms.database.sql, rooms.tenant, { roomId, participantId: null, beforeId: null, limit: 9 }),
    ).toMatchObject([
      {
        tracks: [
          { trackId: 'mic', publishedAt: NOON, unpublishedAt: LATER },
          { trackId: 'cam', unpublishedAt: null },
        ],
      },
    ]);
  });

  test('keeps a publication that was checked before it from being announced after it', async () => {
    const ada = await enter();
    await update(ada.participantId, { permissions: without('audio:publish') });
    const tracks = [track('mic'), track('cam', { kind: 'video', source: 'camera' })];
    expect(await publishTracks(rooms.database, ada.held, tracks, LATER)).toMatchObject({ written: true });
    expect((await rooms.snapshot(roomId)).sessions[0]!.tracks.map(({ trackId }) => trackId)).toEqual(['cam']);
    await update(ada.participantId, { permissions: [...PERMISSIONS] });
    await publishTracks(rooms.database, ada.held, tracks, LATER);
    expect((await rooms.snapshot(roomId)).sessions[0]!.tracks).toHaveLength(2);
  });

  test('leaves no track behind, whatever runs at the same time', async () => {
    const ada = await enter();
    for (let round = 0; round < 10; round += 1) {
      await Promise.all([
        publishTracks(rooms.database, ada.held, [track('mic')], LATER),
        update(ada.participantId, { permissions: without('audio:publish') }),
        updateMetadataOf(rooms.database, ada.held, { round }),
        mute(ada.participantId, 'mic'),
        publishTracks(rooms.database, ada.held, [track('mic')], LATER),
      ]);
      expect((await rooms.snapshot(roomId)).sessions[0]!.tracks).toEqual([]);
      await update(ada.participantId, { permissions: [...PERMISSIONS] });
    }
  });
});

describe('a mute by the server', () => {
  test('is not undone by a publication that does not know it, also on another peer connection', async () => {
    const ada = await enter();
    const muted = async () => (await rooms.snapshot(roomId)).sessions[0]!.tracks.map((one) => one.muted);
    await publishTracks(rooms.database, ada.held, [track('mic')], NOON);
    await mute(ada.participantId, 'mic');
    const both = [track('mic'), track('cam', { kind: 'video', source: 'camera', mid: '1' })];
    await publishTracks(rooms.database, ada.held, both, LATER);
    expect(await muted()).toEqual([true, false]);
    await publishTracks(rooms.database, ada.held, [track('mic', { feedId: 'feed-2' })], LATER);
    expect(await muted()).toEqual([true]);
    expect(await setTracksMuted(rooms.database, [{ held: ada.held, trackId: 'mic', muted: false }])).toEqual([true]);
    expect(await muted()).toEqual([false]);
  });
});

test('the history of a session keeps its latest 100 tracks', async () => {
  const ada = await enter();
  for (let n = 0; n < 26; n += 1) {
    const four = ['a', 'b', 'c', 'd'].map((id) => track(`${id}${n}`));
    await publishTracks(rooms.database, ada.held, four, NOON);
  }
  const wanted = { roomId, participantId: ada.participantId, beforeId: null, limit: 1 };
  const [session] = await listSessions(rooms.database.sql, rooms.tenant, wanted);
  expect(session!.tracks).toHaveLength(104);
  await endOne(rooms.database, ada.held, 'left', LATER);
  const [ended] = await listSessions(rooms.database.sql, rooms.tenant, wanted);
  expect(ended!.tracks.map(({ trackId }) => trackId)).toEqual(session!.tracks.slice(4).map(({ trackId }) => trackId));
  expect(ended!.tracks.every(({ unpublishedAt }) => unpublishedAt !== null)).toBe(true);
});
