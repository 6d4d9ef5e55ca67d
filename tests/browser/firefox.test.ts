import { randomBytes } from 'node:crypto';
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { eventually, startTcpProxy } from '@callplane/testing';
import { openCall, type Call } from './call.testkit.js';
import { openFirefox } from './firefox.testkit.js';
import { hears, plays, type JoinOptions, type Participant } from './pages.testkit.js';
import { signalingUrl } from './stage.testkit.js';

/** Calls between Firefox (Fay) and Chromium (Cleo). Both send and receive. */

let stage: Call['stage'];
let enter: Call['enter'];
let handedOver: Call['handedOver'];
let newFay: () => Promise<Participant>;
let fay: Participant;
let cleo: Participant;
beforeAll(async () => {
  [{ stage, enter, handedOver }, newFay] = await Promise.all([openCall(), openFirefox()]);
});
afterEach(() => fay.close());

async function join(roomId: string, more: Partial<JoinOptions> = {}, fays: Partial<JoinOptions> = more): Promise<void> {
  cleo = await enter(roomId, 'Cleo', more);
  fay = await newFay();
  const { token } = await stage.token(roomId, 'Fay');
  await fay.join({ url: stage.url, token, publish: true, ...fays });
}
const flows = () => Promise.all([plays(fay, 'Cleo'), plays(cleo, 'Fay'), hears(fay), hears(cleo)]);
const bothWays = () =>
  [
    [fay, cleo, 'Fay'],
    [cleo, fay, 'Cleo'],
  ] as const;
async function writes(one: Participant, other: Participant): Promise<void> {
  const text = randomBytes(5_000).toString('hex');
  await one.ask('send', { text });
  await eventually(async () =>
    (await other.events()).some(({ name, what }) => name === 'message' && what.data.text === text),
  );
}

test('Firefox and Chromium hear and see each other, mute, replace a camera and write', async () => {
  await join(await stage.newRoom());
  await flows();
  for (const [one, other, name] of bothWays()) {
    for (const track of ['camera', 'microphone']) await one.ask('mute', track);
    await eventually(async () => (await other.ask<string[]>('mutedOf', name)).length === 2);
    for (const track of ['camera', 'microphone']) await one.ask('unmute', track);
    await one.ask('replace', 'camera');
    await flows();
    await writes(one, other);
  }
});

test('Firefox continues over another gateway, and over a media server that was killed', async () => {
  const gateways = await Promise.all([1, 2].map(() => stage.spawnSignaling()));
  const targets = gateways.map(({ url }) => ({ host: '127.0.0.1', port: Number(new URL(url).port) }));
  const url = signalingUrl((await startTcpProxy(targets)).port);
  // Cleo is on the first gateway, Fay on the second one.
  await join(await stage.newRoom(), { url });
  await flows();
  const before = await fay.ask('negotiations');
  await handedOver(fay);
  gateways[1]!.kill('SIGKILL');
  await eventually(async () => (await fay.events()).some(({ name, what }) => name === 'state' && what === 'connected'));
  await flows();
  expect(await fay.ask('negotiations')).toEqual(before);
  stage.janus.kill('SIGKILL');
  await eventually(async () => (await fay.ask('mediaState')) === 'down');
  await stage.janus.start();
  await flows();
  await gateways[0]!.stop();
});

test('Firefox sends layers, and receives the layers of Chromium', async () => {
  const video = { width: 640, height: 360, frameRate: 10 };
  await join(await stage.newRoom(), { publish: { audio: true, video, simulcast: true }, adaptive: false });
  for (const [one, other, name] of bothWays()) {
    await plays(other, name);
    await one.ask('keepResolution');
    for (const spatial of [0, 1]) {
      await other.ask('receiveLayer', [name, spatial]);
      await eventually(async () => {
        const { height } = await other.ask('meter');
        if (height > 240 !== (spatial === 1)) throw new Error(`${height} lines in layer ${spatial} of ${name}`);
        return true;
      });
    }
  }
});

test('what Firefox encrypts, Chromium decrypts, and the other way round, with the right key alone', async () => {
  const [key, other] = [1, 2].map(() => ({ encryption: { key: randomBytes(32).toString('base64url') } }));
  await join(await stage.newEncryptedRoom(), key, other);
  for (const [one, , name] of bothWays()) {
    await eventually(async () => (await one.ask<string[]>('undecryptable')).length === 2);
    const from = name === 'Fay' ? 'Cleo' : 'Fay';
    expect((await one.ask('received'))[from].frames).toBe(0);
  }
  await fay.ask('rotate', [key!.encryption.key, { keyId: 0, delayMs: 0 }]);
  await flows();
  for (const [one, two] of bothWays()) await writes(one, two);
  for (const page of [fay, cleo]) expect(await page.ask('undecryptable')).toEqual([]);
  expect((await fay.ask('encryption')).fingerprint).toBe((await cleo.ask('encryption')).fingerprint);
});
