import { beforeAll, describe, expect, test } from '@jest/globals';
import { createTestDatabase, eventually, startTestJanus, type RawPeer, type TestJanus } from '@callplane/testing';
import fc from 'fast-check';
import { CAM, flows, MIC, startCall, type TestCall } from './call.testkit.js';
import { hostileInput, type HostileInput, type Target } from './hostile-inputs.testkit.js';
import {
  keyFrameRequests,
  PAYLOADS,
  publishRaw,
  receiveRaw,
  rtcp,
  rtp,
  SSRCS,
  uint32,
  VP8_KEY_FRAME,
} from './hostile-peer.testkit.js';
import { startTestSignaling, usesJanus, type TestInstance, type TestSignaling } from './signaling.testkit.js';

/** CONTRIBUTING.md describes both variables. */
const SEED = Number(process.env['HOSTILE_SEED'] ?? 20_261_128);
const MINUTES = Number(process.env['HOSTILE_MINUTES'] ?? 0);
const INPUTS = 500;
const STORM_MS = 3000;
/** Inputs of one hostile participant: then it leaves, and the next one comes. */
const INPUTS_OF_ONE = 50;
/** All that a room takes. The others' WebRTC library cannot receive H264. */
const CODECS = ['VP8', 'VP9', 'H264', 'AV1'];

let kit: TestSignaling;
let janus: TestJanus;
let one: TestInstance;
let janusPid: number;
beforeAll(async () => {
  const { url: databaseUrl } = await createTestDatabase();
  [kit, janus] = await Promise.all([startTestSignaling({ databaseUrl }), startTestJanus()]);
  one = await kit.start(usesJanus(janus));
  janusPid = janus.pid;
});

/** A call whose two participants receive each other. */
async function call(): Promise<{ roomId: string; ada: TestCall; bob: TestCall }> {
  const roomId = await kit.newRoom();
  const [ada, bob] = [
    startCall(kit, await kit.enter(one.url, roomId)),
    startCall(kit, await kit.enter(one.url, roomId)),
  ];
  await Promise.all([ada.publish([MIC, CAM]), bob.publish([MIC])]);
  await Promise.all([flows(bob.subscriber, 'video'), flows(ada.subscriber, 'audio')]);
  return { roomId, ada, bob };
}

/** Sends audio and three layers of video, as a browser would. */
function startStream(peer: RawPeer): { nextSequence(): number; stop(): void } {
  let sequence = 0;
  const timer = setInterval(() => {
    sequence += 1;
    const body = Buffer.concat([VP8_KEY_FRAME, Buffer.alloc(500)]);
    // Only the first frame is a key frame: the media server forgets frames that are older than one.
    if (sequence > 5) body[3]! |= 1;
    for (const ssrc of SSRCS.video) peer.sendRtp(rtp({ ssrc, payload: PAYLOADS.video, sequence }, body));
    peer.sendRtp(rtp({ ssrc: SSRCS.audio, payload: PAYLOADS.opus, sequence }, Buffer.alloc(40, 1)));
  }, 20);
  return { nextSequence: () => (sequence += 1), stop: () => clearInterval(timer) };
}

/** Joins, publishes, receives, sends the inputs and leaves without a farewell. */
async function attack(ada: TestCall, roomId: string, attempt: number, inputs: readonly HostileInput[]): Promise<void> {
  const eve = await kit.enter(one.url, roomId, { name: 'Eve', autoSubscribe: false });
  const codec = CODECS[(attempt >> 1) % CODECS.length] ?? 'VP8';
  const sender = await publishRaw(eve, { rids: attempt % 2 === 1, codec });
  const stream = startStream(sender);
  try {
    const receiver = await receiveRaw(eve, ada.participantId);
    await eventually(() => receiver.received.rtp.size > 0);
    const target: Target = { sender, receiver, nextSequence: stream.nextSequence };
    for (const { name, send } of inputs) {
      send(target);
      // Lets the packets leave, and names the input after which the media server is dead.
      await new Promise((resolve) => setTimeout(resolve, 10));
      if (!alive()) throw new Error(`the media server has died after: ${name}`);
    }
    receiver.close();
  } finally {
    stream.stop();
    sender.close();
    eve.client.leave();
  }
}

function alive(): boolean {
  try {
    // Signal 0 only asks whether the process exists.
    return process.kill(janusPid, 0);
  } catch {
    return false;
  }
}

const packetsOf = ({ received }: RawPeer) => [...received.rtp.values()].reduce((sum, { packets }) => sum + packets, 0);

describe('a hostile peer', () => {
  test(
    `stops nobody's media with ${INPUTS} malformed inputs`,
    async () => {
      const { roomId, ada, bob } = await call();
      const endsAtMs = performance.now() + MINUTES * 60_000;
      for (let seed = SEED; seed === SEED || performance.now() < endsAtMs; seed += 1) {
        const inputs = fc.sample(hostileInput, { seed, numRuns: INPUTS });
        for (let from = 0; from < INPUTS; from += INPUTS_OF_ONE) {
          const attempt = seed - SEED + from / INPUTS_OF_ONE;
          const names = inputs.slice(from, from + INPUTS_OF_ONE).map(({ name }) => name);
          try {
            await attack(ada, roomId, attempt, inputs.slice(from, from + INPUTS_OF_ONE));
            await Promise.all([
              flows(bob.subscriber, 'video'),
              flows(bob.subscriber, 'audio'),
              flows(ada.subscriber, 'audio'),
            ]);
          } catch (error) {
            throw new Error(`seed ${seed}, inputs from ${from} on: ${names.join(', ')}`, { cause: error });
          }
        }
      }
      expect(alive()).toBe(true);
      expect(ada.client.of('mediaReset')).toEqual([]);
      expect(bob.client.of('mediaReset')).toEqual([]);
      await Promise.all([ada.end(), bob.end()]);
    },
    (MINUTES + 10) * 60_000,
  );

  test.each([
    ['VP9', undefined],
    ['H264', 'track_refused'],
    ['AV1', undefined],
  ])("stops nobody's media with %s as the payload type of VP8", async (codec, failure) => {
    const { roomId, ada, bob } = await call();
    const eve = await kit.enter(one.url, roomId, { name: 'Eve', autoSubscribe: false });
    const sender = await publishRaw(eve, { codec });
    const stream = startStream(sender);
    const cyd = startCall(kit, await kit.enter(one.url, roomId));
    const told = ({ client }: TestCall) => {
      const reports = [...client.of('subscribed'), ...client.of('subscriptionFailed')];
      const tracks = reports.flatMap((report): { participantId: string; trackId: string; code?: string }[] => [
        ...report.tracks,
      ]);
      return tracks.find(({ participantId, trackId }) => participantId === eve.participantId && trackId === 'cam');
    };
    for (const viewer of [ada, bob, cyd]) expect((await eventually(() => told(viewer))).code).toBe(failure);
    await Promise.all([
      ...[bob, cyd].flatMap(({ subscriber }) => [flows(subscriber, 'video'), flows(subscriber, 'audio')]),
      flows(ada.subscriber, 'audio'),
    ]);
    for (const { client } of [ada, bob, cyd]) expect(client.of('mediaReset')).toEqual([]);
    stream.stop();
    sender.close();
    eve.client.leave();
    await Promise.all([ada.end(), bob.end(), cyd.end()]);
  });

  test('gets few key frames, however many it asks for', async () => {
    const roomId = await kit.newRoom();
    const ada = await kit.enter(one.url, roomId, { autoSubscribe: false });
    const publisher = await publishRaw(ada);
    const stream = startStream(publisher);
    const eve = await kit.enter(one.url, roomId, { autoSubscribe: false });
    const receiver = await receiveRaw(eve, ada.participantId);
    await eventually(() => receiver.received.rtp.size > 0);

    const requests = () => publisher.received.rtcp.reduce((sum, packet) => sum + keyFrameRequests(packet), 0);
    const beginsMs = performance.now();
    const [requestsBefore, packetsBefore] = [requests(), packetsOf(receiver)];
    let asked = 0;
    while (performance.now() - beginsMs < STORM_MS) {
      for (const [ssrc, { sequence }] of receiver.received.rtp) {
        const lost = Array.from({ length: 30 }, (_, at) => (((sequence - 17 * (at + 1)) & 0xffff) << 16) | 0xffff);
        receiver.sendRtcp(rtcp(206, 1, uint32(1, ssrc)));
        receiver.sendRtcp(rtcp(205, 1, uint32(1, ssrc, ...lost)));
        asked += 1;
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const seconds = (performance.now() - beginsMs) / 1000;
    stream.stop();
    const arrived = requests() - requestsBefore;
    console.log(
      `measured: ${asked} requests, ${arrived} arrived in ${seconds} s, ${packetsOf(receiver) - packetsBefore} packets`,
    );
    expect(arrived).toBeGreaterThan(0);
    // The media server passes on one a second for each layer. Two more may be on their way at the begin and the end.
    expect(arrived).toBeLessThanOrEqual(SSRCS.video.length * (seconds + 2));
  });
});
