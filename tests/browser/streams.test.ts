import { randomBytes } from 'node:crypto';
import { beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { openCall, type Call } from './call.testkit.js';
import type { JoinOptions, ParticipantPage } from './pages.testkit.js';

const MIB = 1024 * 1024;

let stage: Call['stage'];
let enter: Call['enter'];
beforeAll(async () => {
  ({ stage, enter } = await openCall());
});

interface Sent {
  hash: string;
  delivered: number;
  failed: number;
  progress: number[];
  isSeen: boolean;
}

/** Sends a file to the other pages, and checks that each has received the same. */
async function send(sender: ParticipantPage, receivers: ParticipantPage[], size: number): Promise<Sent> {
  await Promise.all(receivers.map((page) => page.ask('receiveStreams')));
  const sent = await sender.ask<Sent>('sendFile', size);
  expect(sent).toMatchObject({ delivered: receivers.length, failed: 0 });
  expect(sent.progress.at(-1)).toBe(size);
  for (const page of receivers) {
    const found = await eventually(async () => (await page.events()).find(({ name }) => name === 'stream'));
    expect(found.what).toEqual({
      ...{ name: 'film.mp4', contentType: 'video/mp4', size, attributes: { scene: '7' } },
      hash: sent.hash,
    });
  }
  return sent;
}
const enterAll = (roomId: string, more: Partial<JoinOptions> = {}) =>
  Promise.all(['Ada', 'Bob'].map((name) => enter(roomId, name, { publish: false, ...more })));

test('a file of 16 MiB arrives unchanged, within the usual limits', async () => {
  const [ada, bob] = await enterAll(await stage.newRoom());
  const { isSeen } = await send(ada!, [bob!], 16 * MIB);
  expect(isSeen).toBe(true);
  for (const page of [ada!, bob!])
    expect((await page.events()).filter(({ name }) => name === 'state' || name === 'problem')).toEqual([]);
});

test('a file in an encrypted room arrives unchanged, and the gateway sees neither it nor its name', async () => {
  const roomId = await stage.newEncryptedRoom();
  const [ada, bob] = await enterAll(roomId, { encryption: { key: randomBytes(32).toString('base64url') } });
  const { isSeen } = await send(ada!, [bob!], MIB);
  expect(isSeen).toBe(false);
  const eve = await enter(roomId, 'Eve', {
    publish: false,
    encryption: { key: randomBytes(32).toString('base64url') },
  });
  await eve.ask('receiveStreams');
  await eventually(async () => (await ada!.ask('sendFile', 1000)).failed === 1);
  const events = await eve.events();
  expect(events.filter(({ name }) => name === 'stream')).toEqual([]);
  expect(events.find(({ name }) => name === 'encryptionError')).toMatchObject({ what: { reason: 'wrong_key' } });
});
