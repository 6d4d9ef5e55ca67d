import { beforeAll, expect, test } from '@jest/globals';
import { eventually, startUdpShaper, stopAtEnd, type UdpShaper } from '@callplane/testing';
import { openBrowser, type Browsers, type ParticipantPage } from './pages.testkit.js';
import { openStage, type Stage } from './stage.testkit.js';

/** Chromium sends two layers of it. */
const CAMERA = { width: 640, height: 360, frameRate: 15 };
const PATIENCE = { timeoutMs: 60_000, intervalMs: 250 };

interface Meter {
  frames: number;
  concealed: number;
  samples: number;
  bytes: number;
  height: number;
}

let stage: Stage;
let browsers: Browsers;
let shaper: UdpShaper;

beforeAll(async () => {
  [stage, browsers] = await Promise.all([openStage({ relay: true }), openBrowser()]);
  shaper = await startUdpShaper(stage.coturn!);
  stopAtEnd(() => shaper.close());
});

async function join(roomId: string, name: string, options: object = {}): Promise<ParticipantPage> {
  const page = await browsers.newParticipant();
  const { token } = await stage.token(roomId, name);
  await page.join({ url: stage.url, token, ...options });
  return page;
}

const meterOf = (page: ParticipantPage) => page.ask<Meter>('meter');
/** How Ada's camera was received, as the events said. */
const qualitiesOf = async (page: ParticipantPage) =>
  (await page.events()).flatMap(({ name, what }) => (name === 'trackQuality' ? [what.quality as string] : []));

/** Resolves once the page has decoded more frames and more audio since the call. */
async function bothFlow(page: ParticipantPage, kinds: ('frames' | 'samples')[] = ['frames', 'samples']) {
  const first = await meterOf(page);
  await eventually(async () => {
    const now = await meterOf(page);
    for (const kind of kinds) expect(now[kind]).toBeGreaterThan(first[kind] + 10);
    return true;
  }, PATIENCE);
}

test('on a slow line a viewer gets lower layers, then audio alone, and everything again when the line is free', async () => {
  const roomId = await stage.newRoom();
  const ada = await join(roomId, 'Ada', { publish: { audio: true, video: CAMERA, simulcast: true } });
  const bob = await join(roomId, 'Bob', { iceTransportPolicy: 'relay', relayThrough: shaper.port });
  const eve = await join(roomId, 'Eve');
  const hasFullPicture = async (page: ParticipantPage) => {
    await eventually(async () => {
      expect((await meterOf(page)).height).toBe(CAMERA.height);
      return true;
    }, PATIENCE);
    await bothFlow(page);
  };
  await Promise.all([bob, eve].map(hasFullPicture));
  expect(await bob.ask('relays')).toEqual(['none', 'udp']);

  // Less than the larger layer, more than the smaller one.
  shaper.shape({ down: { kbitPerSecond: 220 } });
  await eventually(async () => (await qualitiesOf(bob)).at(-1) === 'reduced', PATIENCE);
  await eventually(async () => {
    expect((await meterOf(bob)).height).toBe(CAMERA.height / 2);
    return true;
  }, PATIENCE);
  await bothFlow(bob);

  // Audio needs about 40 kbit/s.
  shaper.shape({ down: { kbitPerSecond: 70 } });
  await eventually(async () => (await qualitiesOf(bob)).at(-1) === 'paused', PATIENCE);
  await bothFlow(bob, ['samples']);

  shaper.shape({ down: {} });
  await eventually(async () => (await qualitiesOf(bob)).at(-1) === 'full', PATIENCE);
  await hasFullPicture(bob);

  await hasFullPicture(eve);
  expect((await qualitiesOf(eve)).at(-1) ?? 'full').toBe('full');
  expect(await ada.ask('state')).toBe('connected');
});

test('lost audio is sent again, on the way to the media server and from there', async () => {
  const roomId = await stage.newRoom();
  const lossy = { iceTransportPolicy: 'relay', relayThrough: shaper.port };
  shaper.shape({ down: {}, up: {} });
  const ada = await join(roomId, 'Ada', { publish: { audio: true }, ...lossy });
  const bob = await join(roomId, 'Bob', lossy);
  await bothFlow(bob, ['samples']);
  shaper.shape({ down: { lossPercent: 5 }, up: { lossPercent: 5 } });
  const audioOf = async (page: ParticipantPage, target: string, type: string) => {
    const stats = await page.ask<any[]>('statsOf', target);
    return stats.find((entry) => entry.type === type && entry.kind === 'audio');
  };
  await eventually(async () => {
    // Ada's browser repeats what Janus asks for, and Bob's browser asks Janus.
    expect((await audioOf(ada, 'publisher', 'outbound-rtp')).retransmittedPacketsSent).toBeGreaterThan(5);
    expect((await audioOf(bob, 'subscriber', 'inbound-rtp')).nackCount).toBeGreaterThan(5);
    return true;
  }, PATIENCE);
});
