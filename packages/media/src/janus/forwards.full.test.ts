import { readdirSync } from 'node:fs';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually, startTestJanus, type TestJanus } from '@callplane/testing';
import type { MediaNode } from './node.js';
import { nodeOn, startReceiver, startSender, UP_WITHIN_MS, type Receiver } from './node.testkit.js';

let janusA: TestJanus;
let janusB: TestJanus;
let a: MediaNode;
let b: MediaNode;
let count = 0;
beforeAll(async () => {
  [janusA, janusB] = await Promise.all([startTestJanus(), startTestJanus()]);
  [a, b] = [nodeOn(janusA, { id: 'a' }), nodeOn(janusB, { id: 'b' })];
  await Promise.all([a.untilUp(UP_WITHIN_MS), b.untilUp(UP_WITHIN_MS)]);
});

const PORT = 34_000;
/** Of each kind. */
const LOSSES = 30;
const NAME = 'ada+00000001';
const remote = (name: string) => ({ name, port: PORT, extensionIds: new Map([['0', 1]]) });
/** A room on both nodes, and a publisher on the first. */
async function stage() {
  count += 1;
  const roomId = `forwards-${count}`;
  await Promise.all([a.ensureRoom(roomId), b.ensureRoom(roomId)]);
  const ada = await startSender(a, roomId, 'ada');
  return { roomId, ada };
}
const framesOf = ({ peer }: Receiver, kind: 'audio' | 'video') => peer.framesReceived(kind);
const grows = async (bob: Receiver, kind: 'audio' | 'video') => {
  const before = framesOf(bob, kind);
  await eventually(() => framesOf(bob, kind) > before + 3);
};
const stands = async (bob: Receiver) => {
  let before = -1;
  await eventually(
    () => {
      const stood = framesOf(bob, 'video') === before;
      before = framesOf(bob, 'video');
      return stood;
    },
    { intervalMs: 500 },
  );
};
const descriptorsOf = ({ pid }: TestJanus) => readdirSync(`/proc/${pid}/fd`).length;

describe('a feed that a node receives from another', () => {
  test('is received there with picture and sound, and stops at both ends', async () => {
    const { roomId } = await stage();
    expect(await b.receiveFrom(a, roomId, 'ada', remote(NAME))).toEqual(['0', '1']);
    const bob = await startReceiver(b, roomId);
    await bob.change([
      { feedId: NAME, mid: '0' },
      { feedId: NAME, mid: '1' },
    ]);
    await Promise.all([grows(bob, 'video'), grows(bob, 'audio')]);
    await a.moderate(roomId, 'ada', '1', true);
    await stands(bob);
    await a.moderate(roomId, 'ada', '1', false);
    await grows(bob, 'video');
    expect(await b.listFeeds(roomId)).toEqual([NAME]);
    await a.removeFeed(roomId, 'ada');
    await stands(bob);
    expect(await a.forwards.stopSending(roomId, 'ada', NAME)).toBe('absent');
    expect(await b.forwards.stopReceiving(roomId, NAME)).toBe('removed');
    await eventually(async () => (await b.listFeeds(roomId)).length === 0);
    expect(await b.forwards.stopReceiving(roomId, NAME)).toBe('absent');
  });

  test('leaves no descriptor behind, however it ends', async () => {
    const { roomId } = await stage();
    const before = [descriptorsOf(janusA), descriptorsOf(janusB)];
    const ends = {
      a: async (name: string) => void (await b.forwards.stopReceiving(roomId, name)),
      b: async (name: string) => void (await b.removeFeed(roomId, name)),
      c: async () => void (await b.destroyRoom(roomId)),
    };
    for (const [kind, end] of Object.entries(ends)) {
      for (let n = 0; n < LOSSES; n += 1) {
        const name = `ada+${kind}${String(n).padStart(7, '0')}`;
        // The server releases the port of the feed before in its own time.
        await eventually(() => b.receiveFrom(a, roomId, 'ada', remote(name)));
        expect(await a.forwards.stopSending(roomId, 'ada', name)).toBe('removed');
        await end(name);
      }
      // Connections to the server come and go. A loss that left one descriptor would leave twice as many.
      await eventually(() => descriptorsOf(janusB) < before[1]! + LOSSES / 2);
    }
    // A publisher keeps one socket for all of its forwards.
    await eventually(() => descriptorsOf(janusA) <= before[0]! + 1);
  });
});
