import { connect, type Call } from './call.js';
import { join, newTrack } from './local/call-with-devices.testkit.js';
import type { Platform } from './platform.js';
import { nodePlatform, startScriptedGateway, testToken, welcome } from './scripted-gateway.testkit.js';
import { retry } from './wait.js';
import { eventually } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import { WebSocket } from 'ws';

const brief = () => welcome({ reconnectGraceSeconds: 1 });
const closedOf = (call: Call) => new Promise<{ reason: string }>((resolve) => call.once('closed', resolve));

/** A call that has published a microphone and a camera, and whose gateway is gone. It closes after a second. */
async function stranded() {
  const kit = await join({ script: { join: brief } });
  await kit.call.publish({ audio: true, video: true });
  const closed = closedOf(kit.call);
  await kit.gateway.die();
  await eventually(() => kit.call.state === 'reconnecting');
  return { ...kit, closed };
}

/** Whether a timer of this process still fires. Tries in promises alone would keep it from that. */
const isAlive = () => new Promise((resolve) => setTimeout(() => resolve(true), 5));

describe('after the grace period, a call that waited for the gateway rejects with the reason, and nothing is tried again', () => {
  test.each<[string, (call: Call) => Promise<unknown>]>([
    ['mute', (call) => call.mute('microphone')],
    ['unmute', (call) => call.unmute('camera')],
    ['unpublish one', (call) => call.unpublish('camera')],
    ['unpublish all', (call) => call.unpublish()],
    ['publish', (call) => call.publish(newTrack('video'), { source: 'screen' })],
    [
      'replaceTrack',
      async (call) => Promise.all([call.mute('camera'), call.replaceTrack('camera', newTrack('video'))]),
    ],
    ['switchDevice', async (call) => Promise.all([call.mute('camera'), call.switchDevice('videoinput', 'cam-b')])],
    ['send', (call) => call.send('hello')],
    ['updateMetadata', (call) => call.updateMetadata({})],
    ['subscribe', (call) => call.subscribeTracks({ participantId: 'ada', trackId: 'camera' })],
    ['listParticipants', (call) => call.listParticipants()],
    ['show', (call) => call.show(['ada'])],
  ])('%s', async (_name, act) => {
    const { call, closed } = await stranded();
    const acting = act(call);
    await expect(acting).rejects.toMatchObject({ code: 'connection_lost' });
    expect(await closed).toMatchObject({ reason: 'connection_lost' });
    expect(await isAlive()).toBe(true);
  });

  test('a device that ends meanwhile', async () => {
    const { call, closed } = await stranded();
    // As the browser does when a device is unplugged.
    for (const { mediaStreamTrack } of call.tracks.values()) mediaStreamTrack.dispatchEvent(new Event('ended'));
    expect(await closed).toMatchObject({ reason: 'connection_lost' });
    expect(await isAlive()).toBe(true);
    expect(call.tracks.size).toBe(0);
  });

  test('tracks that a lost media server makes the SDK publish again', async () => {
    const { call, gateway } = await join({ script: { join: brief } });
    await call.publish({ audio: true });
    const closed = closedOf(call);
    (await gateway.connection(0)).send({ type: 'mediaReset', targets: ['publisher'] });
    await gateway.die();
    expect(await closed).toMatchObject({ reason: 'connection_lost' });
    expect(await isAlive()).toBe(true);
  });
});

test('leaving ends the attempts to join and to resume', async () => {
  const gateway = await startScriptedGateway({ join: () => welcome() });
  const call = await connect({ url: gateway.url, token: testToken, platform: nodePlatform });
  await gateway.die();
  await eventually(() => call.state === 'reconnecting');
  await call.leave();
  expect(await isAlive()).toBe(true);
  const abort = new AbortController();
  const joining = connect({ url: gateway.url, token: testToken, platform: nodePlatform, signal: abort.signal });
  setTimeout(() => abort.abort(), 50);
  await expect(joining).rejects.toMatchObject({ code: 'aborted' });
  expect(await isAlive()).toBe(true);
});

test('a request over a connection that closes waits for the next one', async () => {
  let isClosing = false;
  class ClosingSocket extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols);
      const state = () => (isClosing ? WebSocket.CLOSING : Reflect.get(WebSocket.prototype, 'readyState', this));
      Object.defineProperty(this, 'readyState', { get: state });
    }
  }
  const platform = { WebSocket: ClosingSocket as unknown as Platform['WebSocket'] };
  const { call, gateway, sent, platform: usual } = await join();
  await call.leave();
  const other = await connect({ url: gateway.url, token: testToken, platform: { ...usual, ...platform } });
  await other.publish({ audio: true });
  isClosing = true;
  const muting = other.mute('microphone');
  expect(await isAlive()).toBe(true);
  (await gateway.connection(1)).cut();
  isClosing = false;
  await muting;
  expect(sent.at(-1)).toMatchObject({ type: 'mute', trackId: 'microphone', muted: true });
  await other.leave();
});

test('a retry takes a timer between two tries, even if its wait is over at once', async () => {
  let tries = 0;
  let isOver = false;
  const retrying = retry(async () => {
    tries += 1;
    // A loop of promises alone ends here, so that it fails this test and does not freeze it.
    return isOver || tries > 1_000 ? undefined : () => Promise.resolve();
  });
  await isAlive();
  isOver = true;
  await retrying;
  expect(tries).toBeLessThan(1_000);
});
