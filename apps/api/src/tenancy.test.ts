import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { startTestApi, type TestApi, type TestTenant } from './api.testkit.js';

const RECOVERY = { since: '2026-01-01T00:00:00Z' };
let api: TestApi;
let stranger: TestTenant;
let room: string;
let participant: string;
let session: string;
let webhook: string;
let delivery: string;
let recovery: string;
let event: string;
beforeAll(async () => {
  api = await startTestApi();
  stranger = await api.newTenant();
  room = await api.room();
  participant = (await api.call('POST', `/v1/rooms/${room}/tokens`, { body: { participantName: 'A' } })).body
    .participantId;
  session = newId('session');
  await api.database.prisma.participantSession.create({
    data: {
      id: session,
      environmentId: api.tenant.environmentId,
      roomId: room,
      participantId: participant,
      startedAt: new Date(),
    },
  });
  webhook = (await api.call('POST', '/v1/webhooks', { body: { url: 'https://example.com/' } })).body.id;
  delivery = (await api.call('POST', `/v1/webhooks/${webhook}/test`)).body.id;
  recovery = (await api.call('POST', `/v1/webhooks/${webhook}/recoveries`, { body: RECOVERY })).body.id;
  ({ id: event } = (await api.call('GET', `/v1/events?roomId=${room}`)).body.data[0]);
  const ending = await api.room();
  await api.call('DELETE', `/v1/rooms/${ending}`);
});

/**
 * Every route with a resource id: method, path with the owner's ids, the same path with ids that do not exist, body.
 */
const resources = (): [string, string, string, object?][] => [
  ['GET', `/v1/rooms/${room}`, '/v1/rooms/room_0'],
  ['PATCH', `/v1/rooms/${room}`, '/v1/rooms/room_0', { name: 'X' }],
  ['DELETE', `/v1/rooms/${room}`, '/v1/rooms/room_0'],
  ['GET', `/v1/rooms/${room}/runtime-operation`, '/v1/rooms/room_0/runtime-operation'],
  ['POST', `/v1/rooms/${room}/tokens`, '/v1/rooms/room_0/tokens', { participantName: 'A' }],
  ['GET', `/v1/rooms/${room}/tokens`, '/v1/rooms/room_0/tokens'],
  ['GET', `/v1/rooms/${room}/participants`, '/v1/rooms/room_0/participants'],
  ['GET', `/v1/rooms/${room}/participants/${participant}`, '/v1/rooms/room_0/participants/part_0'],
  ['PATCH', `/v1/rooms/${room}/participants/${participant}`, '/v1/rooms/room_0/participants/part_0', { name: 'X' }],
  [
    'POST',
    `/v1/rooms/${room}/participants/${participant}/tracks/mic/mute`,
    '/v1/rooms/room_0/participants/part_0/tracks/mic/mute',
  ],
  ['POST', `/v1/rooms/${room}/messages`, '/v1/rooms/room_0/messages', { data: 1 }],
  ['GET', `/v1/rooms/${room}/sessions`, '/v1/rooms/room_0/sessions'],
  ['GET', `/v1/rooms/${room}/participants/${participant}/sessions`, '/v1/rooms/room_0/participants/part_0/sessions'],
  ['DELETE', `/v1/rooms/${room}/participants/${participant}`, '/v1/rooms/room_0/participants/part_0'],
  [
    'GET',
    `/v1/rooms/${room}/participants/${participant}/runtime-operation`,
    '/v1/rooms/room_0/participants/part_0/runtime-operation',
  ],
  ['POST', '/v1/turn/credentials', '/v1/turn/credentials', { roomId: room, sessionId: session }],
  ['GET', `/v1/webhooks/${webhook}`, '/v1/webhooks/whep_0'],
  ['PATCH', `/v1/webhooks/${webhook}`, '/v1/webhooks/whep_0', { enabled: false }],
  ['DELETE', `/v1/webhooks/${webhook}`, '/v1/webhooks/whep_0'],
  ['POST', `/v1/webhooks/${webhook}/rotate-secret`, '/v1/webhooks/whep_0/rotate-secret'],
  ['POST', `/v1/webhooks/${webhook}/rotate-secret/activate`, '/v1/webhooks/whep_0/rotate-secret/activate'],
  ['DELETE', `/v1/webhooks/${webhook}/rotate-secret`, '/v1/webhooks/whep_0/rotate-secret'],
  ['POST', `/v1/webhooks/${webhook}/test`, '/v1/webhooks/whep_0/test'],
  ['GET', `/v1/webhooks/${webhook}/deliveries`, '/v1/webhooks/whep_0/deliveries'],
  ['GET', `/v1/webhooks/${webhook}/deliveries/${delivery}`, '/v1/webhooks/whep_0/deliveries/dlv_0'],
  ['GET', `/v1/webhooks/${webhook}/deliveries/${delivery}/attempts`, '/v1/webhooks/whep_0/deliveries/dlv_0/attempts'],
  [
    'POST',
    `/v1/webhooks/${webhook}/deliveries/${delivery}/replay`,
    '/v1/webhooks/whep_0/deliveries/dlv_0/replay',
    { expectedReplayCount: 0 },
  ],
  ['POST', `/v1/webhooks/${webhook}/deliveries/${delivery}/retry`, '/v1/webhooks/whep_0/deliveries/dlv_0/retry'],
  ['POST', `/v1/webhooks/${webhook}/recoveries`, '/v1/webhooks/whep_0/recoveries', RECOVERY],
  ['GET', `/v1/webhooks/${webhook}/recoveries`, '/v1/webhooks/whep_0/recoveries'],
  ['GET', `/v1/deliveries?endpointId=${webhook}`, '/v1/deliveries?endpointId=whep_0'],
  ['GET', `/v1/events/${event}`, '/v1/events/evt_0'],
  ['GET', `/v1/webhooks/${webhook}/recoveries/${recovery}`, '/v1/webhooks/whep_0/recoveries/rcv_0'],
  ['DELETE', `/v1/webhooks/${webhook}/recoveries/${recovery}`, '/v1/webhooks/whep_0/recoveries/rcv_0'],
];

describe('tenancy', () => {
  test("answers for another tenant's resource exactly as for one that does not exist", async () => {
    for (const [method, theirs, nobodys, body] of resources()) {
      const headers = { 'x-request-id': 'same' };
      const foreign = await api.call(method, theirs, {
        key: stranger.key,
        headers,
        ...(body === undefined ? {} : { body }),
      });
      const nobody = await api.call(method, nobodys, {
        key: stranger.key,
        headers,
        ...(body === undefined ? {} : { body: 'sessionId' in body ? { roomId: 'room_0', sessionId: 'sess_0' } : body }),
      });
      expect(foreign.status).toBe(404);
      expect([method, theirs, foreign.text]).toEqual([method, theirs, nobody.text]);
    }
  });

  test("leaves another tenant's resources unchanged", async () => {
    expect((await api.call('GET', `/v1/rooms/${room}`)).body).toMatchObject({ status: 'created', name: 'A room' });
    expect(await api.database.prisma.participant.count({ where: { roomId: room } })).toBe(1);
    expect((await api.call('GET', `/v1/rooms/${room}/runtime-operation`)).body.error.code).toBe('OPERATION_NOT_FOUND');
    expect((await api.call('GET', `/v1/webhooks/${webhook}`)).body).toMatchObject({
      enabled: true,
      signingKeyVersion: 1,
    });
    expect((await api.call('GET', `/v1/webhooks/${webhook}/deliveries?eventType=webhook.test`)).body.data).toHaveLength(
      1,
    );
    expect((await api.call('GET', `/v1/webhooks/${webhook}/recoveries/${recovery}`)).body.status).toBe('pending');
  });

  test('lists only rows of the own tenant, and rejects a cursor of another tenant', async () => {
    await api.room();
    expect((await api.call('GET', '/v1/rooms', { key: stranger.key })).body.data).toEqual([]);
    const { nextCursor } = (await api.call('GET', '/v1/rooms?limit=1')).body;
    const foreign = await api.call('GET', `/v1/rooms?cursor=${nextCursor}`, { key: stranger.key });
    expect([foreign.status, foreign.body.error.details[0].path]).toEqual([400, 'query.cursor']);
    const { key } = stranger;
    expect((await api.call('GET', '/v1/webhooks', { key })).body.data).toEqual([]);
    expect((await api.call('GET', '/v1/events', { key })).body.data).toEqual([]);
    expect((await api.call('GET', '/v1/deliveries', { key })).body.data).toEqual([]);
    expect((await api.call('GET', '/v1/rooms?name=A%20room', { key })).body.data).toEqual([]);
    const events = await api.call('GET', `/v1/events?roomId=${room}`, { key });
    expect([events.status, events.body.error.code]).toEqual([404, 'ROOM_NOT_FOUND']);
    const [event] = (await api.call('GET', `/v1/events?roomId=${room}`)).body.data;
    expect((await api.call('GET', `/v1/events?after=${event.id}`, { key })).status).toBe(400);
  });

  test('treats another environment of the same project as another tenant', async () => {
    const environmentId = newId('environment');
    await api.database.prisma.environment.create({
      data: { id: environmentId, projectId: api.tenant.projectId, name: 'other', createdAt: new Date() },
    });
    const key = await api.newKey(environmentId);
    expect((await api.call('GET', `/v1/rooms/${room}`, { key })).status).toBe(404);
  });
});
