import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { WebSocket } from 'ws';
import { connect, type Call, type WebSocketLike } from '@callplane/client-js';
import { eventually } from '@callplane/testing';
import { startShade, startTone, wrtcPlatform } from '../fleet/wrtc.testkit.js';
import { openBrowser, type Browsers } from './pages.testkit.js';
import { openStage, type Stage } from './stage.testkit.js';

/** Brightness of each publisher's pictures. */
const SHADES = { Ada: 60, Bob: 100, Cem: 150, Dan: 200 };
type Name = keyof typeof SHADES;
/** Encoding and the conversion of colours change the brightness a little. */
const TOLERANCE = 25;

let stage: Stage;
let browsers: Browsers;
const calls: Call[] = [];

beforeAll(async () => {
  [stage, browsers] = await Promise.all([openStage(), openBrowser()]);
});
afterAll(async () => {
  await Promise.all(calls.map((call) => call.leave()));
});

async function publish(roomId: string, name: Name): Promise<void> {
  const { token } = await stage.token(roomId, name);
  const platform = { ...(await wrtcPlatform()), WebSocket: WebSocket as unknown as new () => WebSocketLike };
  const call = await connect({ url: stage.url, token, autoSubscribe: false, platform });
  calls.push(call);
  await call.publish(await startShade(SHADES[name]), { source: 'camera' });
  if (name !== 'Ada') return;
  const { track } = await startTone();
  await call.publish(track, { source: 'microphone' });
}

test('a browser that turns a page shows the new pictures in the same media sections, and knows who speaks', async () => {
  const roomId = await stage.newRoom();
  await Promise.all((Object.keys(SHADES) as Name[]).map((name) => publish(roomId, name)));
  const viewer = await browsers.newParticipant();
  const { token } = await stage.token(roomId, 'Viewer');
  await viewer.join({ url: stage.url, token, autoSubscribe: false });
  const shows = (names: Name[]) =>
    eventually(async () => {
      const shades = await viewer.ask<Record<string, number | null>>('shades');
      expect(Object.keys(shades).sort()).toEqual([...names].sort());
      for (const name of names) expect(Math.abs((shades[name] ?? -100) - SHADES[name])).toBeLessThan(TOLERANCE);
      return true;
    });
  const offers = async () =>
    (await viewer.ask<{ message: any }[]>('frames'))
      .map(({ message }) => message)
      .filter(({ type }) => type === 'offer');
  const sectionsOf = ({ sdp }: { sdp: string }) => sdp.split('\nm=').length - 1;

  await eventually(async () => (await viewer.ask<Name[]>('publishing')).length === 4);
  await viewer.ask('subscribe', ['Ada', 'Bob']);
  await shows(['Ada', 'Bob']);
  const before = await offers();
  // Ada's microphone has a section of its own.
  expect(sectionsOf(before.at(-1))).toBe(3);
  for (const [hidden, visible] of [
    [
      ['Ada', 'Bob'],
      ['Cem', 'Dan'],
    ],
    [
      ['Cem', 'Dan'],
      ['Bob', 'Ada'],
    ],
  ] as [Name[], Name[]][]) {
    await viewer.ask('unsubscribe', hidden);
    await viewer.ask('subscribe', visible);
    await shows(visible);
  }
  expect(await offers()).toHaveLength(before.length);
  await eventually(async () => {
    const speakers = await viewer.ask<{ name: string; isSpeaking: boolean; audioLevel: number }[]>('activeSpeakers');
    expect(speakers).toEqual([{ name: 'Ada', isSpeaking: true, audioLevel: expect.any(Number) }]);
    return speakers[0]!.audioLevel > 0;
  });
});
