import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { PERMISSIONS } from '@callplane/core';
import { endOne, moveOne } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { MOVES_MAX } from './moves.routes.js';

let api: TestApi;
let from: string;
let to: string;
beforeAll(async () => {
  api = await startTestApi();
});
beforeEach(async () => {
  [from, to] = [await api.room(), await api.room()];
});

const PENDING = { kind: 'participant.move', status: 'pending', attempts: 0, lastError: null, completedAt: null };

/** Issues a token and joins as a gateway does. */
async function enter(roomId = from) {
  const invited = await api.invite(roomId, { participantName: 'Ada', permissions: [...PERMISSIONS] });
  const joined = await api.join(roomId, invited, new Date(), PERMISSIONS);
  const { participantId } = invited;
  return { ...joined, participantId, path: `/v1/rooms/${roomId}/participants/${participantId}` };
}
const move = (path: string, body: object = { roomId: to }, headers = {}) =>
  api.call('POST', `${path}/move`, { body, headers });
const codeOf = async (answer: ReturnType<typeof move>) => {
  const { status, body } = await answer;
  return [status, body.error?.code];
};
const roomEnded = async () => {
  const ended = await api.room();
  await api.call('DELETE', `/v1/rooms/${ended}`);
  return ended;
};

describe('POST /v1/rooms/{roomId}/participants/{participantId}/move', () => {
  test('accepts the move as an operation, which can be read', async () => {
    const { path } = await enter();
    expect(await codeOf(api.call('GET', `${path}/move`))).toEqual([404, 'OPERATION_NOT_FOUND']);
    const moved = await move(path, { roomId: to, permissions: ['room:join'] }, { prefer: 'wait=0' });
    expect([moved.status, moved.body]).toEqual([202, { id: expect.stringMatching(/^op_/), ...PENDING }]);
    expect(moved.headers['preference-applied']).toBe('wait=0');
    expect((await api.call('GET', `${path}/move`)).body).toEqual(moved.body);
    // The operation of a removal is another one.
    expect(await codeOf(api.call('GET', `${path}/runtime-operation`))).toEqual([404, 'OPERATION_NOT_FOUND']);
  });

  test('answers a repeated request with the same operation, and with the same answer for the same key', async () => {
    const { path } = await enter();
    const headers = { 'idempotency-key': 'move' };
    const [first, again, other] = [
      await move(path, { roomId: to }, headers),
      await move(path),
      await move(path, { roomId: to }, headers),
    ];
    expect([again.body.id, other.body, other.headers['idempotency-replayed']]).toEqual([
      first.body.id,
      first.body,
      'true',
    ]);
    const reused = move(path, { roomId: await api.room() }, headers);
    expect(await codeOf(reused)).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    expect(await codeOf(move(path, { roomId: await api.room() }))).toEqual([409, 'PARTICIPANT_MOVED']);
  });

  test('refuses targets that cannot take the participant', async () => {
    const { path } = await enter();
    const full = await api.room({ name: 'Small', maxParticipants: 1 });
    await enter(full);
    const encrypted = await api.room({ name: 'Private', encryption: 'required' });
    const strange = await api.as(await api.newTenant()).room();
    const same = await move(path, { roomId: from });
    expect([same.status, same.body.error.details]).toEqual([
      400,
      [{ path: 'body.roomId', message: 'must be another room' }],
    ]);
    expect(await codeOf(move(path, {}))).toEqual([400, 'VALIDATION_FAILED']);
    expect(await codeOf(move(path, { roomId: to, permissions: ['audio:publish'] }))).toEqual([
      400,
      'VALIDATION_FAILED',
    ]);
    expect(await codeOf(move(path, { roomId: 'room_x' }))).toEqual([404, 'ROOM_NOT_FOUND']);
    expect(await codeOf(move(path, { roomId: strange }))).toEqual([404, 'ROOM_NOT_FOUND']);
    expect(await codeOf(move(path, { roomId: await roomEnded() }))).toEqual([409, 'ROOM_ENDED']);
    expect(await codeOf(move(path, { roomId: full }))).toEqual([409, 'ROOM_FULL']);
    expect(await codeOf(move(path, { roomId: encrypted }))).toEqual([409, 'ENCRYPTION_DIFFERS']);
  });

  test('refuses participants that have no session, were removed, or are unknown', async () => {
    const [gone, removed, moved] = [await enter(), await enter(), await enter()];
    await endOne(api.database, gone, 'left', new Date());
    await api.call('DELETE', removed.path);
    await moveOne(api.database, api.tenant, { roomId: from, ...moved }, { roomId: to }, new Date());
    const path = `/v1/rooms/${from}/participants`;
    const invited = await api.invite(from);
    expect(await codeOf(move(gone.path))).toEqual([409, 'PARTICIPANT_NOT_CONNECTED']);
    expect(await codeOf(move(`${path}/${invited.participantId}`))).toEqual([409, 'PARTICIPANT_NOT_CONNECTED']);
    expect(await codeOf(move(removed.path))).toEqual([409, 'PARTICIPANT_REMOVED']);
    expect(await codeOf(move(moved.path, { roomId: await api.room() }))).toEqual([409, 'PARTICIPANT_MOVED']);
    const token = api.call('POST', `/v1/rooms/${from}/tokens`, {
      body: { participantName: 'Ada', participantId: moved.participantId },
    });
    expect(await codeOf(token)).toEqual([409, 'PARTICIPANT_MOVED']);
    expect(await codeOf(move(`${path}/part_x`))).toEqual([404, 'PARTICIPANT_NOT_FOUND']);
    expect(await codeOf(move('/v1/rooms/room_x/participants/part_x'))).toEqual([404, 'ROOM_NOT_FOUND']);
    await api.call('DELETE', `/v1/rooms/${from}`);
    expect(await codeOf(move(gone.path))).toEqual([409, 'ROOM_ENDED']);
  });

  test('is shown by reads of both rooms, their sessions and the events', async () => {
    const ada = await enter();
    await moveOne(api.database, api.tenant, { roomId: from, ...ada }, { roomId: to }, new Date());
    const left = (await api.call('GET', ada.path)).body;
    const [here] = (await api.call('GET', `/v1/rooms/${to}/participants`)).body.data;
    expect(left).toMatchObject({ state: 'moved', movedTo: { roomId: to, participantId: here.id } });
    expect(here).toMatchObject({ name: 'Ada', movedFrom: { roomId: from, participantId: ada.participantId } });
    expect([left.movedFrom, here.movedTo]).toEqual([undefined, undefined]);
    const sessions = async (room: string) => (await api.call('GET', `/v1/rooms/${room}/sessions`)).body.data;
    expect([await sessions(from), await sessions(to)]).toMatchObject([
      [{ id: ada.sessionId, reason: 'moved' }],
      [{ participantId: here.id, reason: null, leftAt: null }],
    ]);
    const events = (await api.call('GET', `/v1/events?roomId=${to}`)).body.data;
    expect(events.at(-1)).toMatchObject({
      type: 'participant.joined',
      data: { movedFrom: { sessionId: ada.sessionId } },
    });
  });
});

describe('POST /v1/rooms/{roomId}/moves', () => {
  const moveMany = (moves: object[], headers = {}) =>
    api.call('POST', `/v1/rooms/${from}/moves`, { body: { moves }, headers });

  test('accepts an operation for each participant, and names the error of each that is refused', async () => {
    const [ada, bob] = [await enter(), await enter()];
    const other = await api.room();
    const moves = [
      { participantId: ada.participantId, roomId: to },
      { participantId: 'part_x', roomId: to },
      { participantId: bob.participantId, roomId: other, permissions: ['room:join'] },
    ];
    const headers = { 'idempotency-key': 'moves' };
    const { status, body } = await moveMany(moves, headers);
    expect([status, body.data]).toMatchObject([
      202,
      [
        { participantId: ada.participantId, operation: PENDING, error: null },
        { participantId: 'part_x', operation: null, error: { code: 'PARTICIPANT_NOT_FOUND' } },
        { participantId: bob.participantId, operation: PENDING, error: null },
      ],
    ]);
    expect((await moveMany(moves, headers)).body).toEqual(body);
    expect((await api.call('GET', `${bob.path}/move`)).body).toEqual(body.data[2].operation);
  });

  test(`takes 1 to ${MOVES_MAX} participants, each once, to other rooms`, async () => {
    const moves = Array.from({ length: MOVES_MAX + 1 }, (_, n) => ({ participantId: `part_${n}`, roomId: to }));
    const [first] = moves;
    const refusedFor = async (wrong: object[]) => {
      const { status, body } = await moveMany(wrong);
      return [status, body.error.details.map(({ path }: { path: string }) => path)];
    };
    expect(await refusedFor([])).toEqual([400, ['body.moves']]);
    expect(await refusedFor(moves)).toEqual([400, ['body.moves']]);
    expect(await refusedFor([first!, first!])).toEqual([400, ['body.moves[1].participantId']]);
    expect(await refusedFor([first!, { participantId: 'part_x', roomId: from }])).toEqual([
      400,
      ['body.moves[1].roomId'],
    ]);
    expect((await moveMany(moves.slice(1))).body.data).toHaveLength(MOVES_MAX);
    expect(await codeOf(api.call('POST', '/v1/rooms/room_x/moves', { body: { moves: [first] } }))).toEqual([
      404,
      'ROOM_NOT_FOUND',
    ]);
  });
});
