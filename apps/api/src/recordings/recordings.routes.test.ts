import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { makeRecordable, mediaServerRecords, recorderRuns } from './recordings.testkit.js';

let api: TestApi;
beforeAll(async () => {
  // An API of its own: these tests decide whether a recorder and a media server are there.
  api = await startTestApi({});
});
// A pass of an agent counts for 30 s.
beforeEach(() => makeRecordable(api));

const start = (roomId: string, body: object = { mode: 'tracks' }, headers = {}) =>
  api.call('POST', `/v1/rooms/${roomId}/recordings`, { body, headers });
const stop = (id: string) => api.call('POST', `/v1/recordings/${id}/stop`);
const operationsOf = (subjectId: string) => api.database.prisma.runtimeOperation.findMany({ where: { subjectId } });
const eventsOf = async (roomId: string) =>
  (await api.database.prisma.event.findMany({ where: { roomId }, orderBy: { sequence: 'asc' } })).map(
    ({ type }) => type,
  );

describe('the start of a recording', () => {
  test('answers with the recording, writes its event, and is read back', async () => {
    const roomId = await api.room();
    const { participantId } = await api.invite(roomId);
    const body = { mode: 'tracks', participantId, audioOnly: true, maxDurationSeconds: 60, metadata: { lesson: 7 } };
    const started = await start(roomId, body);
    expect(started.status).toBe(202);
    expect(started.body).toMatchObject({ ...body, roomId, status: 'recording', progress: 0, endedAt: null, files: [] });
    expect((await api.call('GET', `/v1/recordings/${started.body.id}`)).body).toEqual(started.body);
    expect(await eventsOf(roomId)).toEqual(['room.created', 'recording.started']);
  });

  test('with the same Idempotency-Key makes one recording of a room', async () => {
    const [roomId, other] = [await api.room(), await api.room()];
    const headers = { 'idempotency-key': `record-${roomId}` };
    const [first, again] = [await start(roomId, undefined, headers), await start(roomId, undefined, headers)];
    expect([again.status, again.body, again.headers['idempotency-replayed']]).toEqual([202, first.body, 'true']);
    expect((await start(other, undefined, headers)).body.error.code).toBe('IDEMPOTENCY_KEY_REUSED');
    expect(await eventsOf(roomId)).toEqual(['room.created', 'recording.started']);
  });

  test('of a composite has a layout, and is refused while another composite of the room runs', async () => {
    const roomId = await api.room();
    const composite = (more: object = {}) => start(roomId, { mode: 'composite', ...more });
    const answers = await Promise.all([composite(), composite()]);
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409]);
    expect(answers.find(({ status }) => status === 409)?.body.error.code).toBe('RECORDING_ACTIVE');
    const first = answers.find(({ status }) => status === 202)!.body;
    expect(first).toMatchObject({ mode: 'composite', layout: 'grid', audioOnly: false });
    expect((await start(roomId)).body).toMatchObject({ mode: 'tracks', layout: null });
    await stop(first.id);
    const second = await composite({ layout: 'speaker' });
    expect(second.body).toMatchObject({ status: 'recording', layout: 'speaker' });
    await stop(second.body.id);
    expect((await composite({ audioOnly: true })).body).toMatchObject({ audioOnly: true, layout: null });
  });

  test('is refused for a mode that does not exist, a strange participant, and an encrypted, ended or unknown room', async () => {
    const roomId = await api.room();
    const { participantId } = await api.invite(await api.room());
    expect((await start(roomId, { mode: 'mosaic' })).body.error).toMatchObject({
      code: 'VALIDATION_FAILED',
      details: [{ path: 'body.mode' }],
    });
    expect((await start(roomId, { mode: 'tracks', participantId })).body.error.code).toBe('PARTICIPANT_NOT_FOUND');
    expect((await start('room_00000000000000000000000000')).body.error.code).toBe('ROOM_NOT_FOUND');
    const encrypted = await api.room({ name: 'Private', encryption: 'required' });
    expect(await start(encrypted)).toMatchObject({ status: 409, body: { error: { code: 'ROOM_ENCRYPTED' } } });
    expect(await eventsOf(encrypted)).toEqual(['room.created']);
    await api.call('DELETE', `/v1/rooms/${roomId}`);
    expect((await start(roomId)).body.error.code).toBe('ROOM_ENDED');
    expect(await eventsOf(roomId)).not.toContain('recording.started');
  });

  test('is 503 without a recorder, without a media server that records, and without a store', async () => {
    const roomId = await api.room();
    const refusedFor = (cause: string) => ({
      status: 503,
      headers: { 'retry-after': '10' },
      body: { error: { code: 'RECORDING_UNAVAILABLE', message: expect.stringContaining(cause) } },
    });
    await recorderRuns(api, -1);
    expect(await start(roomId)).toMatchObject(refusedFor('no recorder'));
    await recorderRuns(api);
    await mediaServerRecords(api, 60);
    expect(await start(roomId)).toMatchObject(refusedFor('no agent'));
    await mediaServerRecords(api);
    // Another server records, but the room is on this one.
    await api.database.prisma.room.update({ where: { id: roomId }, data: { mediaNodeId: 'm2' } });
    expect(await start(roomId)).toMatchObject(refusedFor('no agent'));
    const without = await startTestApi({ RECORDINGS_FOLDER: '' });
    const answer = await without.call('POST', `/v1/rooms/${await without.room()}/recordings`, {
      body: { mode: 'tracks' },
    });
    expect(answer).toMatchObject(refusedFor('no store'));
  });
});

describe('the end of a recording', () => {
  test('writes its event and one operation, however often it is requested', async () => {
    const roomId = await api.room();
    const { id } = (await start(roomId)).body;
    const [first, again] = await Promise.all([stop(id), stop(id)]);
    for (const answer of [first, again]) expect(answer).toMatchObject({ status: 202, body: { status: 'processing' } });
    expect(first.body.endedAt).toBe(again.body.endedAt);
    expect(await operationsOf(id)).toMatchObject([{ kind: 'recording.process', status: 'pending', roomId }]);
    expect(await eventsOf(roomId)).toEqual(['room.created', 'recording.started', 'recording.stopped']);
  });

  test('gives it a place in the queue, each environment in its turn', async () => {
    const roomId = await api.room();
    const mine: string[] = [];
    for (let n = 0; n < 3; n += 1) mine.push((await start(roomId)).body.id);
    for (const id of mine) await stop(id);
    const other = api.as(await api.newTenant());
    const theirs = (
      await other.call('POST', `/v1/rooms/${await other.room()}/recordings`, { body: { mode: 'tracks' } })
    ).body.id;
    await other.call('POST', `/v1/recordings/${theirs}/stop`);
    const placeOf = async (who: TestApi, id: string) =>
      (await who.call('GET', `/v1/recordings/${id}`)).body.queuePosition;
    const places = await Promise.all(mine.map((id) => placeOf(api, id)));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(await placeOf(other, theirs)).toBeLessThan(places[1]);
  });
});

describe('recordings', () => {
  test('are listed newest first, by room and status, in pages', async () => {
    const [roomId, empty] = [await api.room(), await api.room()];
    const ids: string[] = [];
    for (let n = 0; n < 3; n += 1) ids.unshift((await start(roomId)).body.id);
    await stop(ids[0]!);
    const list = async (path: string) => (await api.pages(path)).map(({ id }) => id as string);
    expect(await list(`/v1/rooms/${roomId}/recordings?limit=2`)).toEqual(ids);
    expect(await list(`/v1/recordings?roomId=${roomId}&limit=1`)).toEqual(ids);
    expect(await list(`/v1/recordings?roomId=${roomId}&status=recording`)).toEqual(ids.slice(1));
    expect(await list(`/v1/rooms/${empty}/recordings?limit=2`)).toEqual([]);
  });

  test('are deleted only once they have ended, and are not found from then on', async () => {
    const { id } = (await start(await api.room())).body;
    expect((await api.call('DELETE', `/v1/recordings/${id}`)).body.error.code).toBe('RECORDING_ACTIVE');
    await stop(id);
    const deleted = await api.call('DELETE', `/v1/recordings/${id}`);
    expect(deleted).toMatchObject({ status: 202, body: { kind: 'recording.delete', status: 'pending' } });
    expect((await api.call('DELETE', `/v1/recordings/${id}`)).body.id).toBe(deleted.body.id);
    for (const answer of [await api.call('GET', `/v1/recordings/${id}`), await stop(id)]) {
      expect(answer.body.error.code).toBe('RECORDING_NOT_FOUND');
    }
  });
});

describe('the option of a room', () => {
  const create = (record: unknown) => api.call('POST', '/v1/rooms', { body: { name: 'Recorded', record } });

  test('is stored as it was sent, changed and removed', async () => {
    const record = { mode: 'tracks', maxDurationSeconds: 60, metadata: { lesson: 7 } };
    const { status, body } = await create(record);
    expect([status, body.record]).toEqual([201, record]);
    const path = `/v1/rooms/${body.id}`;
    expect((await api.call('GET', path)).body.record).toEqual(record);
    const change = async (to: unknown) => (await api.call('PATCH', path, { body: { record: to } })).body.record;
    expect(await change({ mode: 'tracks', audioOnly: true })).toEqual({ mode: 'tracks', audioOnly: true });
    expect(await change(null)).toBeNull();
    expect((await api.call('GET', path)).body.record).toBeNull();
  });

  test('is refused as a request to record would be', async () => {
    for (const [record, at] of [
      [{ mode: 'film' }, 'body.record.mode'],
      [{ mode: 'tracks', maxDurationSeconds: 0 }, 'body.record.maxDurationSeconds'],
      [{ mode: 'tracks', participantId: 'part_1' }, 'body.record.participantId'],
      [{}, 'body.record.mode'],
    ]) {
      const { body } = await create(record);
      expect(body.error.details.map(({ path }: { path: string }) => path)).toContain(at);
    }
    await mediaServerRecords(api, 3600);
    expect((await create({ mode: 'tracks' })).body.error.code).toBe('RECORDING_UNAVAILABLE');
    expect((await create(null)).status).toBe(201);
  });
});
