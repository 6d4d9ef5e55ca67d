import { connect } from 'node:net';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { muteTrack } from '@callplane/db';
import type { MediaNode } from '@callplane/media';
import { JobProducer, publishRoomChanged } from '@callplane/queue';
import {
  createRtcPeer,
  createTestDatabase,
  eventually,
  PATIENT_REDIS,
  startTestJanus,
  stopAtEnd,
  type TestJanus,
} from '@callplane/testing';
import { flows, startCall, type TestCall } from '../call.testkit.js';
import {
  connectJanus,
  startTestSignaling,
  usesJanus,
  type TestInstance,
  type TestSignaling,
} from '../signaling.testkit.js';
import { codeOf, FRAGMENT, post, request, startEncoder, type Encoder } from './whip.testkit.js';

let kit: TestSignaling;
let janus: TestJanus;
let node: MediaNode;
let one: TestInstance;
let two: TestInstance;
let producer: JobProducer;
const start = () => kit.start({ ...usesJanus(janus), TURN_URLS: 'turn:turn.example.org', TURN_SECRET: 'x'.repeat(32) });
beforeAll(async () => {
  // Its orphans belong to no other file.
  const { url: databaseUrl } = await createTestDatabase();
  [kit, janus] = await Promise.all([startTestSignaling({ databaseUrl }), startTestJanus()]);
  [one, two] = await Promise.all([start(), start()]);
  [node] = (await connectJanus(janus)).all() as [MediaNode];
  producer = new JobProducer(kit.redis.url, { onLost: () => undefined, onReady: () => undefined }, PATIENT_REDIS);
  stopAtEnd(() => producer.close());
});
const calls: TestCall[] = [];
const encoders: Encoder[] = [];
afterEach(async () => {
  for (const { peer } of encoders.splice(0)) peer.close();
  await Promise.all(calls.splice(0).map((call) => call.end()));
});

async function view(roomId: string, url = one.url): Promise<TestCall> {
  const call = startCall(kit, await kit.enter(url, roomId, { permissions: ['room:join'], name: 'Viewer' }));
  calls.push(call);
  return call;
}
async function publish(url: string, token: string, options = {}): Promise<Encoder> {
  const encoder = await startEncoder(url, token, options);
  encoders.push(encoder);
  expect(await encoder.patch(url, await encoder.fragment(), encoder.etag)).toMatchObject({ status: 204 });
  return encoder;
}
/** A room with a viewer, and an encoder that it receives. */
async function live(options = {}) {
  const roomId = await kit.newRoom();
  const [viewer, invited] = [await view(roomId), await kit.invite(roomId, { name: 'Encoder' })];
  const encoder = await publish(one.url, invited.token, options);
  await flows(viewer.subscriber, 'video');
  return { roomId, viewer, encoder, ...invited };
}
const story = (roomId: string, participantId: string) => kit.story(roomId, participantId);
const PUBLISHED = ['joined', 'published camera', 'published microphone'];
const sorted = async (roomId: string, participantId: string) => {
  const [first, ...rest] = await story(roomId, participantId);
  return [first, ...rest.slice(0, 2).sort(), ...rest.slice(2)];
};
const rowOf = (id: string) => kit.database.prisma.participantSession.findUniqueOrThrow({ where: { id } });
const heldBy = async (encoder: Encoder) => (await rowOf(encoder.sessionId)).instanceId;

describe('an encoder', () => {
  test('publishes with one POST, trickles, is received, and leaves with DELETE', async () => {
    const { roomId, participantId, encoder, viewer } = await live();
    const { headers, text } = encoder.posted;
    expect(headers.get('content-type')).toBe('application/sdp');
    expect(headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
    expect(headers.get('location')).toMatch(/^\/v1\/whip\/sess_[0-9a-z]{26}$/);
    expect(headers.get('etag')).toMatch(/^"[\w-]{22}"$/);
    expect(headers.get('accept-patch')).toBe('application/trickle-ice-sdpfrag');
    expect(headers.get('link')).toMatch(
      /^<turn:turn\.example\.org>; rel="ice-server"; username="\d+:sess_\w+"; credential="[\w+/=]+"; credential-type="password"$/,
    );
    expect(text).toMatch(/a=candidate:.*\r\n/);
    await flows(viewer.subscriber, 'audio');
    expect(viewer.client.others.get(participantId)?.tracks).toEqual(
      expect.arrayContaining([
        { trackId: 'camera', kind: 'video', source: 'camera', muted: false },
        { trackId: 'microphone', kind: 'audio', source: 'microphone', muted: false },
      ]),
    );
    // Nobody else ends or changes it: no other participant, and no other tenant.
    const others = [
      await kit.invite(roomId),
      await kit.invite(roomId, { claims: { environmentId: newId('environment') } }),
    ];
    for (const other of others) {
      const options = { token: other.token, body: await encoder.fragment(), 'content-type': FRAGMENT, 'if-match': '*' };
      expect((await request(one.url, 'PATCH', encoder.location, options)).status).toBe(404);
      expect((await request(two.url, 'DELETE', encoder.location, { token: other.token })).status).toBe(404);
    }
    expect((await post(one.url, others[1]!.token, encoder.peer.localSdp())).status).toBe(401);
    // Any gateway ends it.
    expect(await encoder.delete(two.url)).toMatchObject({ status: 200, text: '' });
    await viewer.client.untilOthers((others) => !others.has(participantId));
    expect(await sorted(roomId, participantId)).toEqual([
      ...PUBLISHED,
      'unpublished camera',
      'unpublished microphone',
      'left left',
    ]);
    await eventually(async () => (await node.listFeeds(roomId)).length === 0);
    expect(await encoder.delete(one.url)).toMatchObject({ status: 404 });
    expect(await one.valueOf('callplane_signaling_whip_requests_total{method="POST",status="201"')).toBeGreaterThan(0);
    await eventually(() => one.log().includes('"transport":"whip"') && one.log().includes('"reason":"left"'));
  });

  test('trickles and restarts ICE at another gateway, and the old entity tag is stale then', async () => {
    const roomId = await kit.newRoom();
    const [viewer, { token }] = [await view(roomId), await kit.invite(roomId)];
    const encoder = await startEncoder(one.url, token);
    encoders.push(encoder);
    const fragment = await encoder.fragment();
    const wrong = await encoder.patch(two.url, fragment, '"wrong"');
    expect([wrong.status, codeOf(wrong)]).toEqual([412, 'PRECONDITION_FAILED']);
    const none = await encoder.patch(two.url, fragment, undefined);
    expect([none.status, codeOf(none)]).toEqual([428, 'PRECONDITION_REQUIRED']);
    const trickled = await encoder.patch(two.url, fragment, encoder.etag);
    expect([trickled.status, trickled.text, trickled.headers.get('etag')]).toEqual([204, '', null]);
    await flows(viewer.subscriber, 'video');
    expect((await rowOf(encoder.sessionId)).connection).toBe(1);
    await eventually(async () => (await rowOf(encoder.sessionId)).media !== null);
    const restarted = await eventually(async () => {
      const answer = await encoder.restart(two.url);
      return answer.status === 503 ? null : answer;
    });
    expect(restarted).toMatchObject({
      status: 200,
      text: expect.stringMatching(/^a=ice-ufrag:\S+\r\na=ice-pwd:\S+\r\n/),
    });
    expect(restarted.headers.get('content-type')).toBe('application/trickle-ice-sdpfrag');
    expect(restarted.headers.get('etag')).not.toBe(encoder.etag);
    expect((await rowOf(encoder.sessionId)).connection).toBe(2);
    expect((await encoder.patch(one.url, fragment, encoder.etag)).status).toBe(412);
    // A restart that fails keeps the session.
    expect((await encoder.patch(one.url, 'a=ice-ufrag:abcd\r\na=ice-pwd:short\r\n', '*')).status).toBe(400);
    await flows(viewer.subscriber, 'video');
    // By now the peer uses the new ICE session alone.
    await eventually(() => encoder.peer.connectionState() === 'connected');
    await flows(viewer.subscriber, 'video');
  });

  test('is muted, removed, and ended with its room, as any participant', async () => {
    const { roomId, participantId, encoder, viewer } = await live();
    const muted = await muteTrack(kit.database, kit.tenant, roomId, participantId, 'camera', new Date());
    if (muted.outcome !== 'muted') throw new Error(muted.outcome);
    await publishRoomChanged(producer.redis, roomId, muted.version);
    await viewer.client.untilOthers(
      (others) => others.get(participantId)?.tracks.find(({ trackId }) => trackId === 'camera')?.muted === true,
    );
    await eventually(async () => {
      const before = viewer.subscriber()!.framesReceived('video');
      await new Promise((resolve) => setTimeout(resolve, 500));
      return viewer.subscriber()!.framesReceived('video') - before < 3;
    });
    await kit.remove(roomId, participantId);
    await viewer.client.untilOthers((others) => !others.has(participantId));
    await eventually(async () => (await node.listFeeds(roomId)).length === 0);
    expect((await encoder.delete(one.url)).status).toBe(404);

    const second = await live();
    await kit.end(second.roomId);
    await eventually(async () => (await node.listFeeds(second.roomId)).length === 0);
    expect((await second.encoder.delete(one.url)).status).toBe(404);
  });

  test('that posts again with its token replaces its session', async () => {
    const { roomId, participantId, token, encoder, viewer } = await live();
    const again = await publish(two.url, token);
    expect(again.sessionId).not.toBe(encoder.sessionId);
    await eventually(async () => (await story(roomId, participantId)).includes('left superseded'));
    await flows(viewer.subscriber, 'video');
    await eventually(async () => (await node.listFeeds(roomId)).length === 1);
    expect((await encoder.delete(one.url)).status).toBe(404);
    expect((await again.delete(one.url)).status).toBe(200);
  });

  test('cannot be moved to another room, because it could not follow, and continues', async () => {
    const { roomId, participantId, viewer } = await live();
    await expect(kit.move(roomId, participantId, await kit.newRoom())).rejects.toThrow('PARTICIPANT_NOT_CONNECTED');
    await flows(viewer.subscriber, 'video');
  });

  test('that closes its peer connection, and one whose packets stop for 15 s, are out of the room', async () => {
    const [closing, silent] = [await live(), await live()];
    const stoppedAtMs = performance.now();
    closing.encoder.peer.close();
    for (const track of silent.encoder.tracks) track.stop();
    for (const { roomId, participantId, encoder } of [closing, silent]) {
      await eventually(async () => (await story(roomId, participantId)).at(-1) === 'left connection_lost');
      const tookMs = performance.now() - stoppedAtMs;
      process.stderr.write(`    measured: out after ${Math.round(tookMs)} ms\n`);
      if (encoder === silent.encoder) expect(tookMs).toBeGreaterThan(15_000);
      await eventually(async () => (await node.listFeeds(roomId)).length === 0);
    }
    await eventually(() => one.log().includes('No packet has arrived for 1'));
  });

  test('that has gone before its answer is out of the room', async () => {
    const roomId = await kit.newRoom();
    const { token, participantId } = await kit.invite(roomId);
    const peer = await createRtcPeer();
    peer.addVideo();
    const offer = await peer.offer();
    const { hostname, port } = new URL(one.url);
    const socket = connect(Number(port), hostname);
    const head = `POST /v1/whip HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/sdp\r\n`;
    socket.write(`${head}Content-Length: ${Buffer.byteLength(offer)}\r\n\r\n${offer}`);
    await eventually(async () => (await story(roomId, participantId)).length > 0);
    socket.destroy();
    await eventually(async () => /^left /.test((await story(roomId, participantId)).at(-1) ?? ''));
    await eventually(async () => (await node.listFeeds(roomId)).length === 0);
  });

  test('gets no further than its limit with a thousand POSTs of one token', async () => {
    const limited = { RATE_LIMIT_JOINS_PER_MINUTE: '20', RATE_LIMIT_JOINS_BURST: '10' };
    const own = await kit.start({ ...usesJanus(janus), ...limited });
    const roomId = await kit.newRoom();
    const { token, participantId } = await kit.invite(roomId);
    const encoder = await startEncoder(own.url, token);
    encoders.push(encoder);
    const offer = encoder.peer.localSdp();
    const counts = new Map<number, number>();
    const startedAtMs = performance.now();
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        for (let n = 0; n < 50; n++) {
          const { status, text } = await post(own.url, token, offer);
          counts.set(status, (counts.get(status) ?? 0) + 1);
          if (status !== 201) expect(text.length).toBeLessThan(1000);
        }
      }),
    );
    process.stderr.write(`    measured: ${JSON.stringify([...counts])}\n`);
    expect([...counts.keys()].filter((status) => ![201, 409, 429].includes(status))).toEqual([]);
    const minutes = (performance.now() - startedAtMs) / 60_000;
    expect(1000 - (counts.get(429) ?? 0)).toBeLessThanOrEqual(10 + Math.ceil(20 * minutes));
    const live = await kit.database.prisma.participantSession.count({ where: { participantId, endedAt: null } });
    expect(live).toBeLessThanOrEqual(1);
    await eventually(async () => (await node.listFeeds(roomId)).length <= 1);
    await own.close();
  });
});

describe('the gateway of an encoder', () => {
  test('drains: another one continues the session while packets flow', async () => {
    const third = await start();
    const roomId = await kit.newRoom();
    const [viewer, { token, participantId }] = [await view(roomId), await kit.invite(roomId)];
    const encoder = await publish(third.url, token);
    await flows(viewer.subscriber, 'video');
    const before = await heldBy(encoder);
    await third.close();
    await eventually(async () => {
      const { instanceId, disconnectedAt } = await rowOf(encoder.sessionId);
      return instanceId !== before && disconnectedAt === null;
    });
    await flows(viewer.subscriber, 'video');
    expect(await sorted(roomId, participantId)).toEqual(PUBLISHED);
    expect((await encoder.restart(one.url)).status).toBe(200);
    await flows(viewer.subscriber, 'video');
    expect((await encoder.delete(two.url)).status).toBe(200);
  });

  test('dies: another one continues the session before the grace is over', async () => {
    const third = await start();
    const roomId = await kit.newRoom();
    const [viewer, { token, participantId }] = [await view(roomId), await kit.invite(roomId)];
    const encoder = await publish(third.url, token);
    await flows(viewer.subscriber, 'video');
    const before = await heldBy(encoder);
    await eventually(async () => ((await rowOf(encoder.sessionId)).media as { publisher?: unknown } | null)?.publisher);
    const diedAtMs = performance.now();
    third.app.kill('SIGKILL');
    await eventually(async () => (await heldBy(encoder)) !== before);
    process.stderr.write(`    measured: adopted after ${Math.round(performance.now() - diedAtMs)} ms\n`);
    await flows(viewer.subscriber, 'video');
    expect(await sorted(roomId, participantId)).toEqual(PUBLISHED);
    expect((await encoder.delete(one.url)).status).toBe(200);
    expect((await request(one.url, 'OPTIONS', '/v1/whip')).status).toBe(200);
  });
});
