import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { WAITING_MAX } from '@callplane/core';
import { endOne } from '@callplane/testing';
import { acceptEmptyRoomEnds } from '../operations/room-end.js';
import { findRoom } from '../rooms/rooms.repository.js';
import { listSessions } from '../sessions/session-history.js';
import { NOON, startTestRooms, type Invited, type TestRooms } from '../sessions/sessions.testkit.js';
import { readUsage } from '../usage/usage.js';
import { admitParticipant } from './admission.js';
import { findParticipants } from './participants.repository.js';

let rooms: TestRooms;
let roomId: string;
beforeAll(async () => {
  rooms = await startTestRooms();
});
beforeEach(async () => {
  roomId = await rooms.newRoom();
});

const LATER = new Date(NOON.getTime() + 60_000);
const admit = ({ participantId }: Pick<Invited, 'participantId'>, now = LATER) =>
  admitParticipant(rooms.database, rooms.tenant, roomId, participantId, now);
const types = async () => (await rooms.events(roomId)).map(({ type }) => type);

async function invite(): Promise<Invited> {
  const invited = await rooms.invite(roomId);
  await rooms.sql(`UPDATE participants SET waiting = true WHERE id = '${invited.participantId}'`);
  return invited;
}
async function wait(invited?: Invited) {
  const person = invited ?? (await invite());
  const joined = await rooms.join(roomId, person);
  if (joined.outcome !== 'joined') throw new Error(joined.outcome);
  const { sessionId, connection, state } = joined;
  return { ...person, sessionId, state, held: { sessionId, connection } };
}
const read = async ({ participantId: id }: Invited) =>
  (await findParticipants(rooms.database.sql, [{ tenant: rooms.tenant, roomId, id }]))[0]!;

describe('a session in the lobby', () => {
  test('does not start its room, count in it, or keep it open', async () => {
    await rooms.sql(`UPDATE rooms SET empty_since = now() - interval '1 hour' WHERE id = '${roomId}'`);
    const ada = await wait();
    expect(ada.state.waiting).toBe(true);
    expect(await findRoom(rooms.database.sql, rooms.tenant, roomId)).toMatchObject({
      status: 'created',
      participantCount: 0,
    });
    expect(await read(ada)).toMatchObject({ isWaiting: true, isConnected: true });
    expect(await types()).toEqual(['participant.waiting']);
    const ended = await acceptEmptyRoomEnds(rooms.database.sql, 60_000, 10, LATER);
    expect(ended.map((operation) => operation.roomId)).toContain(roomId);
  });

  test('counts in no usage and no history, unless it is admitted', async () => {
    const [ada, bob] = [await wait(), await wait()];
    await admit(bob);
    for (const { held } of [ada, bob]) {
      await endOne(rooms.database, held, 'left', new Date(LATER.getTime() + 30_000));
    }
    const query = { roomId, participantId: null, beforeId: null, limit: 9 };
    expect(await listSessions(rooms.database.sql, rooms.tenant, query)).toMatchObject([
      { participantId: bob.participantId, startedAt: LATER },
    ]);
    const day = new Date('2030-01-01T00:00:00Z');
    const [usage] = await readUsage(rooms.database.sql, rooms.tenant, day, day, new Date('2030-01-01T23:00:00Z'));
    expect(usage).toMatchObject({ participantMs: 30_000, peakParticipants: 1 });
    expect((await rooms.events(roomId)).filter(({ type }) => type === 'participant.left')).toMatchObject([
      { data: { reason: 'left', waiting: true, participant: { id: ada.participantId } } },
      { data: { reason: 'left', participant: { id: bob.participantId } } },
    ]);
  });

  test(`has one of ${WAITING_MAX} places`, async () => {
    const ada = await wait();
    await rooms.sql(`
      INSERT INTO participants (id, environment_id, room_id, name, metadata, role, created_at, token_expires_at)
      SELECT 'part_' || n || '${roomId}', '${rooms.tenant.environmentId}', '${roomId}', 'x', '{}', 'x', now(), now()
      FROM generate_series(2, ${WAITING_MAX}) n`);
    await rooms.sql(`
      INSERT INTO participant_sessions (id, environment_id, room_id, participant_id, started_at, waiting)
      SELECT 'sess_' || n || '${roomId}', '${rooms.tenant.environmentId}', '${roomId}', 'part_' || n || '${roomId}',
        now(), true
      FROM generate_series(2, ${WAITING_MAX}) n`);
    expect(await rooms.join(roomId, await invite())).toEqual({ outcome: 'capacity' });
    expect(await rooms.join(roomId, ada)).toMatchObject({ outcome: 'joined' });
    expect(await rooms.join(roomId, await rooms.invite(roomId))).toMatchObject({ outcome: 'joined' });
  });
});

describe('an admission', () => {
  test('begins the session, starts the room and its recording, and is written once', async () => {
    roomId = await rooms.newRoom({ record: { mode: 'composite' } });
    const ada = await wait();
    expect(await admit(ada)).toMatchObject({ outcome: 'updated', version: expect.any(Number) });
    expect(await admit(ada)).toMatchObject({ outcome: 'updated', version: null, deliveries: [] });
    const begun = ['participant.waiting', 'participant.admitted', 'room.started', 'participant.joined'];
    expect(await types()).toEqual([...begun, 'recording.started']);
    const room = await findRoom(rooms.database.sql, rooms.tenant, roomId);
    expect(room).toMatchObject({ status: 'active', startedAt: LATER, participantCount: 1 });
    expect(room?.recordingSince).toBeInstanceOf(Date);
    const { sessions } = await rooms.snapshot(roomId);
    expect(sessions).toMatchObject([{ sessionId: ada.sessionId, waiting: false, startedAt: LATER }]);
  });

  test('before the first join, and after the session, lets later joins in', async () => {
    const ada = await invite();
    expect(await admit(ada)).toMatchObject({ outcome: 'updated', version: null });
    expect(await wait(ada)).toMatchObject({ state: { waiting: false } });
    const bob = await wait();
    await endOne(rooms.database, bob.held, 'left', LATER);
    await admit(bob);
    expect(await wait(bob)).toMatchObject({ state: { waiting: false } });
    const admitted = (await rooms.events(roomId)).filter(({ type }) => type === 'participant.admitted');
    expect(admitted).toMatchObject([{ data: { sessionId: null } }, { data: { sessionId: null } }]);
  });

  test('needs a place in the room', async () => {
    roomId = await rooms.newRoom({ maxParticipants: 1 });
    const [ada, bob] = [await wait(), await wait()];
    const outcomes = await Promise.all([admit(ada), admit(bob)]);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['room_full', 'updated']);
    expect((await findRoom(rooms.database.sql, rooms.tenant, roomId))!.participantCount).toBe(1);
  });

  test('is refused for a removed participant, for an ended room and in another room', async () => {
    const ada = await wait();
    await rooms.remove(roomId, ada.participantId);
    expect(await admit(ada)).toEqual({ outcome: 'removed' });
    const bob = await wait();
    await rooms.end(roomId);
    expect(await admit(bob)).toEqual({ outcome: 'room_ended' });
    roomId = await rooms.newRoom();
    expect(await admit(bob)).toEqual({ outcome: 'not_found' });
  });
});
