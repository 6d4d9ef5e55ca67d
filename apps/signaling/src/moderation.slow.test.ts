import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { PERMISSIONS, type Permission } from '@callplane/core';
import { muteTrack, updateParticipant, updateRoom, type ParticipantPatch, type RoomPatch } from '@callplane/db';
import { JobProducer, publishRoomChanged, publishRoomMessage } from '@callplane/queue';
import { eventually, PATIENT_REDIS, startTestJanus, stopAtEnd, type TestJanus } from '@callplane/testing';
import { CAM, flows, MIC, startCall, type TestCall } from './call.testkit.js';
import { connectClient } from './client.testkit.js';
import {
  startTestSignaling,
  usesJanus,
  type Joined,
  type TestInstance,
  type TestSignaling,
} from './signaling.testkit.js';

/** A room with more participants is paged. */
const FULL_MAX = 4;

let kit: TestSignaling;
let janus: TestJanus;
let one: TestInstance;
let two: TestInstance;
let producer: JobProducer;
beforeAll(async () => {
  [kit, janus] = await Promise.all([startTestSignaling(), startTestJanus()]);
  const settings = { ...usesJanus(janus), ROSTER_FULL_MAX: String(FULL_MAX), RECONNECT_GRACE_SECONDS: '60' };
  [one, two] = await Promise.all([kit.start(settings), kit.start(settings)]);
  producer = new JobProducer(kit.redis.url, { onLost: () => undefined, onReady: () => undefined }, PATIENT_REDIS);
  stopAtEnd(() => producer.close());
});

const without = (...withdrawn: Permission[]) => PERMISSIONS.filter((permission) => !withdrawn.includes(permission));
const enter = (instance: TestInstance, roomId: string, options = {}) => kit.enter(instance.url, roomId, options);

/** Acts like the API: the transaction and the notice. */
async function update(roomId: string, { participantId }: Joined, patch: ParticipantPatch): Promise<void> {
  const updated = await updateParticipant(kit.database, kit.tenant, roomId, participantId, patch, new Date());
  if (updated.outcome !== 'updated') throw new Error(updated.outcome);
  await publishRoomChanged(producer.redis, roomId, updated.version);
}
async function mute(roomId: string, { participantId }: Joined, trackId: string): Promise<void> {
  const muted = await muteTrack(kit.database, kit.tenant, roomId, participantId, trackId, new Date());
  if (muted.outcome !== 'muted') throw new Error(muted.outcome);
  await publishRoomChanged(producer.redis, roomId, muted.version);
}

/** Includes the transaction of the API. */
function measured(what: string, startedAtMs: number): void {
  process.stderr.write(`    measured: ${what} after ${Math.round(performance.now() - startedAtMs)} ms\n`);
}

describe('a change of a participant by the server', () => {
  test('reaches the clients of all gateways, and the client that it is about', async () => {
    const roomId = await kit.newRoom();
    const ada = await enter(one, roomId);
    const bob = await enter(two, roomId);
    const startedAtMs = performance.now();
    await update(roomId, ada, { name: 'Ada Lovelace', permissions: ['room:join'] });
    const renamed =
      (name: string) =>
      ({ changes }: { changes: { kind: string; participant?: { name: string } }[] }) =>
        changes.some((change) => change.kind === 'participant' && change.participant?.name === name);
    await Promise.all([ada, bob].map(({ client }) => client.until('changes', renamed('Ada Lovelace'))));
    expect(await ada.client.until('permissions')).toEqual({ type: 'permissions', permissions: ['room:join'] });
    measured('a change of a participant is in force on all gateways', startedAtMs);
    expect(await ada.client.ask({ type: 'message', data: 1 }, 'error')).toMatchObject({ code: 'permission_denied' });
    await update(roomId, ada, { permissions: ['room:join', 'messages:send'] });
    await ada.client.until('permissions', ({ permissions }) => permissions.includes('messages:send'));
    await ada.client.ask({ type: 'message', data: 2 }, 'ok');
    expect(bob.client.of('permissions')).toEqual([]);
  });

  test('holds after a resumption at another gateway and for a new join with the same token', async () => {
    const roomId = await kit.newRoom();
    const ada = await enter(one, roomId);
    await update(roomId, ada, { permissions: ['room:join'] });
    await ada.client.until('permissions');
    ada.client.terminate();
    const resumed = await kit.resume(two.url, ada.welcome);
    expect(resumed.permissions).toEqual(['room:join']);
    const again = await kit.join(one.url, ada);
    expect(again.welcome.permissions).toEqual(['room:join']);
    expect(await again.client.ask({ type: 'message', data: 1 }, 'error')).toMatchObject({ code: 'permission_denied' });
  });

  test('reaches a viewer of a paged room', async () => {
    const roomId = await kit.newRoom();
    const viewers: Joined[] = [];
    for (let n = 0; n <= FULL_MAX; n++) viewers.push(await enter(n % 2 === 0 ? one : two, roomId));
    const last = viewers.at(-1)!;
    await viewers[0]!.client.until('rosterPaged');
    expect(last.welcome.roster.paged).toBe(true);
    await update(roomId, last, { permissions: ['room:join'] });
    expect(await last.client.until('permissions')).toMatchObject({ permissions: ['room:join'] });
    expect(viewers.slice(0, -1).flatMap(({ client }) => client.of('permissions'))).toEqual([]);
  });
});

describe('a change of the room by the server', () => {
  async function change(roomId: string, patch: RoomPatch): Promise<void> {
    const updated = await updateRoom(kit.database, kit.tenant, roomId, patch, new Date());
    if (updated.outcome !== 'updated') throw new Error(updated.outcome);
    await publishRoomChanged(producer.redis, roomId, updated.version);
  }
  const named =
    (name: string) =>
    ({ room }: { room: Record<string, unknown> }) =>
      room['name'] === name;

  test('reaches the clients of all gateways, and later welcomes', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = [await enter(one, roomId), await enter(two, roomId)];
    await change(roomId, { name: 'Renamed', metadata: { topic: 'x' } });
    for (const { client, welcome } of [ada, bob]) {
      const { room } = await client.until('roomUpdated', named('Renamed'));
      expect(room).toEqual({
        ...welcome.room,
        name: 'Renamed',
        metadata: { topic: 'x' },
        status: 'active',
        startedAt: room['startedAt'],
      });
    }
    // A second change within a second arrives, too.
    await change(roomId, { name: 'Renamed again' });
    await Promise.all([ada, bob].map(({ client }) => client.until('roomUpdated', named('Renamed again'))));
    const late = await enter(two, roomId);
    expect(late.welcome.room).toMatchObject({ name: 'Renamed again', metadata: { topic: 'x' } });
    expect(late.client.of('roomUpdated')).toEqual([]);
  });

  test('to a lower capacity removes no participant, and refuses joins until enough have left', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = [await enter(one, roomId), await enter(one, roomId)];
    await change(roomId, { maxParticipants: 1 });
    await ada.client.until('roomUpdated', ({ room }) => room['maxParticipants'] === 1);
    const refused = await connectClient(one.url);
    refused.send({ type: 'join', token: (await kit.invite(roomId)).token });
    await refused.untilClosed('capacity');
    expect((await bob.client.ask({ type: 'message', data: 1 }, 'ok')).type).toBe('ok');
  });
});

test('a message of the server reaches everyone on all gateways, or only its recipients', async () => {
  const roomId = await kit.newRoom();
  const [ada, bob] = [await enter(one, roomId), await enter(two, roomId)];
  const send = (to: string[] | null, data: unknown) => {
    const text = JSON.stringify({ type: 'message', from: 'server', data, sentAt: new Date().toISOString() });
    return publishRoomMessage(producer.redis, roomId, 'server', { from: 'server', to, text });
  };
  await send(null, 'all');
  for (const { client } of [ada, bob]) {
    expect(await client.until('message', ({ data }) => data === 'all')).toMatchObject({ from: 'server' });
  }
  await send([bob.participantId], 'one');
  await send(null, 'last');
  await Promise.all([ada, bob].map(({ client }) => client.until('message', ({ data }) => data === 'last')));
  expect(bob.client.of('message').map(({ data }) => data)).toEqual(['all', 'one', 'last']);
  expect(ada.client.of('message').map(({ data }) => data)).toEqual(['all', 'last']);
});

describe('the quality that clients report', () => {
  const seconds = async ({ welcome }: Joined) =>
    kit.database.prisma.participantSession.findUniqueOrThrow({ where: { id: welcome.sessionId } });

  test('reaches the others on all gateways, and later participants', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = [await enter(one, roomId), await enter(two, roomId)];
    await ada.client.ask({ type: 'quality', level: 'poor', relay: true, lossPercent: 12.5 }, 'ok');
    const entry = { participantId: ada.participantId, level: 'poor' };
    expect(await bob.client.until('quality')).toEqual({ type: 'quality', participants: [entry] });
    const late = await enter(two, roomId);
    expect(await late.client.until('quality')).toEqual({ type: 'quality', participants: [entry] });
    await ada.client.ask({ type: 'quality', level: 'good' }, 'ok');
    await bob.client.until('quality', ({ participants }) => participants[0]!.level === 'good');
    // More than the bucket holds, even if it refills meanwhile.
    const many = Array.from({ length: 20 }, () => ada.client.request({ type: 'quality', level: 'fair' }));
    expect((await Promise.all(many)).filter(({ type }) => type === 'error')[0]).toMatchObject({ code: 'rate_limited' });
  });

  test('is counted in the record of the session, over a resumption at another gateway', async () => {
    const roomId = await kit.newRoom();
    const ada = await enter(one, roomId);
    await ada.client.ask({ type: 'quality', level: 'poor', relay: true }, 'ok');
    // A lower bound: the clock counts whole seconds.
    await new Promise((resolve) => setTimeout(resolve, 1100));
    ada.client.terminate();
    const { client } = await kit.resume(two.url, ada.welcome);
    await eventually(async () => (await seconds(ada)).poorSeconds >= 1);
    await client.ask({ type: 'quality', level: 'good' }, 'ok');
    await new Promise((resolve) => setTimeout(resolve, 1100));
    client.send({ type: 'leave' });
    await client.untilClosed('left');
    await eventually(async () => (await seconds(ada)).goodSeconds >= 1);
    const { fairSeconds, relayedSeconds } = await seconds(ada);
    expect(fairSeconds).toBe(0);
    expect(relayedSeconds).toBeGreaterThanOrEqual(1);
  });
});

describe('media', () => {
  const calls: TestCall[] = [];
  afterEach(async () => {
    await Promise.all(calls.splice(0).map((one) => one.end()));
  });
  async function call(instance: TestInstance, roomId: string): Promise<TestCall> {
    const started = startCall(kit, await enter(instance, roomId));
    calls.push(started);
    return started;
  }

  /** Resolves once the media server relays nothing more of the kind. Audio continues as silence: only video stops. */
  async function stops({ subscriber }: TestCall): Promise<void> {
    await eventually(
      async () => {
        const [peer, before] = [subscriber(), subscriber()?.framesReceived('video')];
        await new Promise((resolve) => setTimeout(resolve, 500));
        return subscriber() === peer && peer?.framesReceived('video') === before;
      },
      { intervalMs: 10 },
    );
  }

  const stored = async (roomId: string) =>
    (await kit.database.prisma.sessionTrack.findMany({ where: { session: { roomId } } })).map(({ trackId, muted }) => [
      trackId,
      muted,
    ]);

  test('of a track that the server muted is not relayed until the participant unmutes it', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = [await call(one, roomId), await call(two, roomId)];
    await ada.publish([CAM]);
    await flows(bob.subscriber, 'video');
    const startedAtMs = performance.now();
    await mute(roomId, ada, 'cam');
    const isMuted = ({ changes }: { changes: { kind: string; tracks?: { muted: boolean }[] }[] }) =>
      changes.some(({ kind, tracks }) => kind === 'tracks' && tracks?.[0]?.muted === true);
    await Promise.all([ada, bob].map(({ client }) => client.until('changes', isMuted)));
    await stops(bob);
    measured('a muted track is no longer relayed', startedAtMs);
    // The client still sends, and an offer that says nothing of the mute does not undo it.
    await ada.publish([CAM, MIC]);
    await flows(bob.subscriber, 'audio');
    await stops(bob);
    expect(await stored(roomId)).toEqual(
      expect.arrayContaining([
        ['cam', true],
        ['mic', false],
      ]),
    );
    await ada.client.ask({ type: 'mute', trackId: 'cam', muted: false }, 'ok');
    await flows(bob.subscriber, 'video');
    expect((await kit.events(roomId)).filter(({ type }) => type === 'track.muted')).toHaveLength(1);
  });

  test('of a withdrawn permission is unpublished and not relayed, and a new permission needs no new token', async () => {
    const roomId = await kit.newRoom();
    const [ada, bob] = [await call(one, roomId), await call(two, roomId)];
    await ada.publish([MIC, CAM]);
    await flows(bob.subscriber, 'video');
    await update(roomId, ada, { permissions: without('video:publish') });
    await ada.client.until('permissions');
    await stops(bob);
    await eventually(async () => (await stored(roomId)).length === 1);
    const sdp = await ada.publisher()!.offer();
    const tracks = [{ trackId: 'cam', source: 'camera', mid: '1' }];
    expect(['permission_denied', 'invalid_sdp']).toContain(
      ((await ada.client.ask({ type: 'publish', sdp, tracks }, 'error')) as { code: string }).code,
    );
    await update(roomId, ada, { permissions: [...PERMISSIONS] });
    await ada.client.until('permissions', ({ permissions }) => permissions.includes('video:publish'));
    await ada.publish([MIC, CAM]);
    await flows(bob.subscriber, 'video');
    expect(await kit.story(roomId, ada.participantId)).toEqual(
      expect.arrayContaining(['published cam', 'unpublished cam', 'updated']),
    );
  });
});
