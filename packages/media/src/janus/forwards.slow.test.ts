import { readdirSync } from 'node:fs';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually, startTestJanus, udpPortsOf, type TestJanus } from '@callplane/testing';
import type { ForwardedStream } from '../types.js';
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

/** Of all forwards of this file. The system gives no port of this range to other sockets. */
const PORTS = { first: 32_400, last: 32_599 };
/** Of each kind. */
const LOSSES = 10;
let port = PORTS.first;
let names = 0;
/** A forward with a name and ports that no other one has. */
function remote() {
  names += 1;
  port += 2;
  if (port > PORTS.last) port = PORTS.first;
  return { name: `ada+${String(names).padStart(8, '0')}`, port, extensionIds: new Map([['0', 1]]) };
}
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

/** The ports of forwards that a Janus has open. */
const openPorts = ({ pid }: TestJanus) => udpPortsOf(pid).filter((one) => one >= PORTS.first && one <= PORTS.last);

describe('a feed that a node receives from another', () => {
  test('is received there with picture and sound, and stops at both ends', async () => {
    const { roomId } = await stage();
    const forward = remote();
    expect(await b.receiveFrom(a, roomId, 'ada', forward)).toEqual(['0', '1']);
    expect(openPorts(janusB)).toEqual([forward.port, forward.port + 1]);
    const bob = await startReceiver(b, roomId);
    await bob.change([
      { feedId: forward.name, mid: '0' },
      { feedId: forward.name, mid: '1' },
    ]);
    await Promise.all([grows(bob, 'video'), grows(bob, 'audio')]);
    await a.moderate(roomId, 'ada', '1', true);
    await stands(bob);
    await a.moderate(roomId, 'ada', '1', false);
    await grows(bob, 'video');
    expect(await b.listFeeds(roomId)).toEqual([forward.name]);
    await a.removeFeed(roomId, 'ada');
    await stands(bob);
    expect(await a.forwards.stopSending(roomId, 'ada', forward.name)).toBe('absent');
    expect(await b.forwards.stopReceiving(roomId, forward.name)).toBe('removed');
    await eventually(async () => (await b.listFeeds(roomId)).length === 0);
    expect(await b.forwards.stopReceiving(roomId, forward.name)).toBe('absent');
  });

  test('leaves no port and no descriptor behind, however it ends', async () => {
    const { roomId } = await stage();
    const before = descriptorsOf(janusA);
    const ends = [
      async (name: string) => expect(await b.forwards.stopReceiving(roomId, name)).toBe('removed'),
      async (name: string) => expect(await b.removeFeed(roomId, name)).toBe('removed'),
      async () => expect(await b.destroyRoom(roomId)).toBe('destroyed'),
    ];
    for (const end of ends) {
      for (let n = 0; n < LOSSES; n += 1) {
        const forward = remote();
        await b.receiveFrom(a, roomId, 'ada', forward);
        expect(await a.forwards.stopSending(roomId, 'ada', forward.name)).toBe('removed');
        await end(forward.name);
      }
    }
    await eventually(() => openPorts(janusB).length === 0);
    // A publisher keeps one socket for all of its forwards.
    await eventually(() => descriptorsOf(janusA) <= before + 1);
  });

  // Janus puts it into the room some time after its answer: without a wait, some of a hundred removals find nothing.
  test('can be removed as soon as the node has it', async () => {
    const roomId = 'at-once';
    await b.ensureRoom(roomId);
    const streams: ForwardedStream[] = [{ mid: '0', kind: 'audio', codec: 'opus', rest: {} }];
    for (let n = 0; n < 5 * LOSSES; n += 1) {
      const forward = remote();
      await b.forwards.receive(roomId, forward, streams, 'b');
      expect(await b.forwards.stopReceiving(roomId, forward.name)).toBe('removed');
    }
    await eventually(() => openPorts(janusB).length === 0);
  });
});
