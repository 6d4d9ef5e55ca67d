import { beforeAll, expect, test } from '@jest/globals';
import { connectToTestRedis, eventually } from '@callplane/testing';
import { startTestSignaling, type TestInstance, type TestSignaling } from '../signaling.testkit.js';

let kit: TestSignaling;
let gateway: TestInstance;
let redis: Awaited<ReturnType<typeof connectToTestRedis>>;
beforeAll(async () => {
  kit = await startTestSignaling();
  [gateway, redis] = await Promise.all([kit.start(), connectToTestRedis(kit.redis.url)]);
});

const invalidPayloads = () => gateway.valueOf('callplane_redis_payloads_invalid_total{connection="rooms"');

test('a writer of Redis can neither grant a permission, end a session, invent a participant nor end a gateway', async () => {
  const roomId = await kit.newRoom();
  const ada = await kit.enter(gateway.url, roomId, { permissions: ['room:join'] });
  const room = { id: roomId, name: 'Room', metadata: {}, maxParticipants: 100, status: 'ended' };
  const participant = ['Eve', {}, 'participant', 1, 2, 3, null, null];
  const sessions = [
    [ada.welcome.sessionId, ada.participantId, 9, 'elsewhere', 99, 'removed'],
    ['sess_eve', 'part_eve', 1, 'elsewhere', 99, null, 1, ['messages:send'], null, null, ...participant],
  ];
  const changes = { tenant: kit.tenant, room, version: 99, after: 1, mediaNodeId: null, rosterPaged: false, sessions };
  const message = (from: string, text: object) => ({
    type: 'message',
    from: 'eve',
    message: { from, to: null, text: JSON.stringify(text) },
  });
  const sentAt = new Date().toISOString();
  const forged = [
    { type: 'changed', from: 'eve', roomId, range: { after: 1, version: 99 }, changes },
    message('part_eve', { type: 'message', from: 'part_eve', data: 'I do not exist', sentAt }),
    message('part_eve', { type: 'part', from: 'part_eve', streamId: 's', offset: 0, data: 'AAAA' }),
    { type: 'report', from: 'eve', kind: 'quality', report: [{ participantId: 'part_eve', level: 'lost' }] },
    { type: 'report', from: 'eve', kind: 'layers', report: [['x', [1e9]]] },
  ];
  const invalid = [
    { type: 'changed', range: null },
    message('server', { type: 'permissions', permissions: ['messages:send'] }),
    message('server', { type: 'message', from: ada.participantId, data: 1, sentAt }),
    message(ada.participantId, { type: 'message', from: ada.participantId, data: 1, sentAt: 'yesterday' }),
    message(ada.participantId, { type: 'part', from: ada.participantId, streamId: 's', offset: -1, data: 'AAAA' }),
  ];
  const before = await invalidPayloads();
  for (const payload of [...forged, ...invalid]) {
    await redis.publish(`callplane:room:${roomId}`, JSON.stringify({ v: 1, ...payload }));
  }
  await redis.publish(`callplane:room:${roomId}`, '{"v":1,"type":"changed"');
  await eventually(async () => (await invalidPayloads()) === before + invalid.length + 1);
  // A true message comes after all of them.
  await redis.publish(
    `callplane:room:${roomId}`,
    JSON.stringify({ v: 1, ...message('server', { type: 'message', from: 'server', data: 'true', sentAt }) }),
  );
  expect(await ada.client.until('message')).toMatchObject({ from: 'server', data: 'true' });
  expect(ada.client.of('message')).toHaveLength(1);
  expect(ada.client.of('part')).toEqual([]);
  expect([...ada.client.of('permissions'), ...ada.client.of('changes'), ...ada.client.of('quality')]).toEqual([]);
  const refused = await ada.client.ask({ type: 'message', data: 1 }, 'error');
  expect(refused).toMatchObject({ code: 'permission_denied' });
  const late = await kit.enter(gateway.url, roomId);
  expect(late.welcome.participants.map(({ participantId }) => participantId)).toEqual([ada.participantId]);
  expect(gateway.log()).toContain('redis payload invalid');
});
