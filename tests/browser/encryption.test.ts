import { randomBytes } from 'node:crypto';
import { beforeAll, expect, test } from '@jest/globals';
import { eventually, startTcpProxy } from '@callplane/testing';
import { openCall, type Call } from './call.testkit.js';
import {
  energyOf,
  framesOf,
  hears,
  mediaFlows,
  plays,
  type JoinOptions,
  type ParticipantPage,
} from './pages.testkit.js';
import { signalingUrl } from './stage.testkit.js';

/** The notes of spy-worker.mjs. */
interface Spied {
  /** Frames as text, by side (`send`), stage (`in`) and codec. */
  seen: Record<string, string[] | undefined>;
  nonces: string[];
}

let stage: Call['stage'];
let enter: Call['enter'];
let handedOver: Call['handedOver'];
beforeAll(async () => {
  ({ stage, enter, handedOver } = await openCall());
});

/** All frames travel with each try. */
const EVERY_SECOND = { intervalMs: 1_000 };
/** The start code of a unit of H.264. */
const START = '\0\0\x01';
const newKey = () => randomBytes(32).toString('base64url');
const under = (key: string, more: Partial<JoinOptions> = {}): Partial<JoinOptions> => ({
  encryption: { key },
  ...more,
});
const codeOf = (join: Promise<unknown>): Promise<string | undefined> =>
  join.then(
    () => undefined,
    (error: unknown) => /is (?:not )?encrypted/.exec(String(error))?.[0],
  );

test('the same frames arrive, and the media server sees others', async () => {
  const roomId = await stage.newEncryptedRoom();
  const spied = under(newKey(), { isSpied: true });
  const [ada, bob] = await Promise.all([enter(roomId, 'Ada', spied), enter(roomId, 'Bob', spied)]);
  await mediaFlows([ada, bob]);
  await eventually(async () => {
    const [sent, received] = (await Promise.all([ada, bob].map((page) => page.ask<Spied>('spied', 'notes')))).map(
      ({ seen }) => seen,
    );
    for (const [codec, clearBytes] of [
      ['audio/opus', () => 1],
      ['video/VP8', (frame: string) => ((frame.charCodeAt(0) & 1) === 0 ? 10 : 1)],
    ] as const) {
      const [plain, encrypted] = [sent![`send in ${codec}`] ?? [], sent![`send out ${codec}`] ?? []];
      const [relayed, opened] = [received![`receive in ${codec}`] ?? [], received![`receive out ${codec}`] ?? []];
      const shared = (some: string[], others: string[]) => {
        const set = new Set(others);
        return some.filter((frame) => set.has(frame)).length;
      };
      if (shared(opened, plain) < 10) throw new Error(`${shared(opened, plain)} frames of ${codec} arrived`);
      expect(shared(relayed, encrypted)).toBeGreaterThanOrEqual(10);
      expect(shared(relayed, plain)).toBe(0);
      // Of each frame, only the named bytes are as they were.
      for (const [at, before] of plain.slice(0, 20).entries()) {
        const clear = clearBytes(before);
        expect(encrypted[at]!.slice(0, clear)).toBe(before.slice(0, clear));
        expect(encrypted[at]!.length).toBeGreaterThanOrEqual(before.length + 25);
        const next = before.slice(clear, clear + 16);
        if (next.length === 16) expect(encrypted[at]).not.toContain(next);
      }
    }
    return true;
  }, EVERY_SECOND);
});

test('H.264 arrives as it was, and only the head of each first slice and the parameter sets are clear', async () => {
  const roomId = await stage.newEncryptedRoom();
  const spied = under(newKey(), { isSpied: true });
  const ada = await enter(roomId, 'Ada', { ...spied, publish: { audio: false, video: true, codec: 'h264' } });
  const bob = await enter(roomId, 'Bob', { ...spied, publish: false });
  await plays(bob, 'Ada');
  // The packetizer writes start codes anew.
  const units = (frames: string[] = []) => frames.map((frame) => frame.replaceAll(`\0${START}`, START));
  await eventually(async () => {
    const [{ seen: sent }, { seen: received }] = [
      await ada.ask<Spied>('spied', 'notes'),
      await bob.ask<Spied>('spied', 'notes'),
    ];
    const [plain, sealed] = [units(sent['send in video/H264']), units(sent['send out video/H264'])];
    const opened = units(received['receive out video/H264']);
    const given = new Set(plain);
    expect(opened.filter((frame) => given.has(frame)).length).toBeGreaterThanOrEqual(10);
    for (const [at, frame] of sealed.slice(0, 20).entries()) {
      const before = plain[at]!;
      const parts = before.split(START);
      const slice = parts.findIndex((unit) => [1, 5].includes(unit.charCodeAt(0) & 31));
      const clear = parts.slice(0, slice).join(START).length + START.length + 4;
      expect(frame.slice(0, clear)).toBe(before.slice(0, clear));
      const next = before.slice(clear, clear + 16);
      if (next.length === 16) expect(frame).not.toContain(next);
      // No byte of the secret looks like a start code to the media server.
      for (const code of ['\0\0\0', START, '\0\0\x02']) expect(frame.slice(clear - 4)).not.toContain(code);
    }
    return true;
  }, EVERY_SECOND);
});

test('a wrong key plays nothing, is reported, and heals with the right one', async () => {
  const roomId = await stage.newEncryptedRoom();
  const key = newKey();
  const [ada, eve] = await Promise.all([
    enter(roomId, 'Ada', under(key)),
    enter(roomId, 'Eve', under(newKey(), { publish: false })),
  ]);
  await eventually(async () => (await eve.ask<string[]>('undecryptable')).length === 2);
  expect((await eve.ask('undecryptable')).sort()).toEqual(['Ada/camera', 'Ada/microphone']);
  expect((await eve.events()).find(({ name }) => name === 'encryptionError')).toMatchObject({
    by: 'Ada',
    what: { reason: 'wrong_key' },
  });
  expect([await framesOf(eve, 'Ada'), await energyOf(eve)]).toEqual([0, 0]);
  expect((await eve.ask('encryption')).fingerprint).not.toBe((await ada.ask('encryption')).fingerprint);
  await eve.ask('rotate', [key, { keyId: 0, delayMs: 0 }]);
  await plays(eve, 'Ada');
  expect(await eve.ask('undecryptable')).toEqual([]);
  expect(await energyOf(eve)).toBeGreaterThan(0);
  const { fingerprint } = await ada.ask('encryption');
  expect(fingerprint).toMatch(/^(\d{4} ){5}\d{4}$/);
  expect(await eve.ask('encryption')).toMatchObject({ keyId: 0, fingerprint });
});

test('a room and a client that do not agree on encryption refuse each other', async () => {
  const [encrypted, plain] = await Promise.all([stage.newEncryptedRoom(), stage.newRoom()]);
  expect(await codeOf(enter(encrypted, 'Ada', { publish: false }))).toBe('is encrypted');
  expect(await codeOf(enter(plain, 'Ada', under(newKey(), { publish: false })))).toBe('is not encrypted');
});

test('everybody follows a rotated and a ratcheted key, and a message is read with them', async () => {
  const roomId = await stage.newEncryptedRoom();
  const [first, second] = [newKey(), newKey()];
  const cipher = 'AES-GCM-128' as const;
  const [ada, bob, left] = await Promise.all(
    ['Ada', 'Bob', 'Left'].map((name) => enter(roomId, name, { encryption: { key: first, cipher } })),
  );
  await mediaFlows([ada!, bob!, left!]);
  await Promise.all([ada, bob].map((page) => page!.ask('rotate', [second])));
  await eventually(async () => (await left!.ask<string[]>('undecryptable')).length === 4);
  await plays(bob!, 'Ada');
  const next = await ada!.ask<{ key: string; keyId: number }>('ratchet');
  expect(next.keyId).toBe(2);
  await plays(bob!, 'Ada');
  await eventually(async () => (await bob!.ask('encryption')).keyId === 2);
  const late = await enter(roomId, 'Late', { encryption: { ...next, cipher }, publish: false });
  await Promise.all([plays(late, 'Ada'), plays(late, 'Bob')]);
  await ada!.ask('send', { text: 'hello' });
  await eventually(async () => (await late.events()).some(({ what }) => what.data?.text === 'hello'));
  await eventually(async () =>
    (await left!.events()).some(({ name, what }) => name === 'encryptionError' && !what.trackId),
  );
  expect((await left!.events()).some(({ name }) => name === 'message')).toBe(false);
});

test('layers, mutes, replaced media and sections that are used again keep playing', async () => {
  const roomId = await stage.newEncryptedRoom();
  const key = newKey();
  const video = { width: 640, height: 360, frameRate: 10 };
  // The first page decides how large the pictures of the fake camera are.
  const ada = await enter(roomId, 'Ada', under(key, { publish: { audio: true, video, simulcast: true } }));
  // A busy machine must not choose the layers.
  const bob = await enter(roomId, 'Bob', under(key, { adaptive: false }));
  await mediaFlows([ada, bob]);
  await ada.ask('keepResolution');
  const heightOf = async (page: ParticipantPage): Promise<number> => (await page.ask('meter')).height;
  for (const spatial of [0, 1, 0, 1]) {
    await bob.ask('receiveLayer', ['Ada', spatial]);
    await eventually(
      async () => {
        const height = await heightOf(bob);
        if (height > 180 !== (spatial === 1)) throw new Error(`${height} lines in layer ${spatial}`);
        return true;
      },
      { timeoutMs: 30_000 },
    );
    await plays(bob, 'Ada');
  }
  for (const track of ['camera', 'microphone']) {
    await ada.ask('mute', track);
    await ada.ask('unmute', track);
  }
  await Promise.all([plays(bob, 'Ada'), hears(bob)]);
  await ada.ask('show', ['Bob', false]);
  await eventually(async () => (await ada.ask<any[]>('frames')).some(({ message }) => message.tracks?.[0]?.paused));
  await ada.ask('show', ['Bob', true]);
  await plays(ada, 'Bob');
  await ada.ask('replace', 'camera');
  await plays(bob, 'Ada');
  // The section of the screen carries another track afterwards, at the sender and at the receiver.
  await ada.ask('shareScreen');
  await eventually(async () => (await bob.ask('others')).Ada.includes('screen'));
  await ada.ask('unpublish', 'camera');
  await ada.ask('unpublish', 'screen');
  expect(await ada.ask('publish', { video: true })).toBeNull();
  await plays(bob, 'Ada');
  expect(await bob.ask('undecryptable')).toEqual([]);
});

test('over a drained gateway and a killed media server, media continues with the same key and no nonce twice', async () => {
  const gateways = await Promise.all([1, 2].map(() => stage.spawnSignaling()));
  const balancer = await startTcpProxy(
    gateways.map(({ url }) => ({ host: '127.0.0.1', port: Number(new URL(url).port) })),
  );
  const roomId = await stage.newEncryptedRoom();
  const spied = under(newKey(), { isSpied: true, url: signalingUrl(balancer.port) });
  const both = [await enter(roomId, 'Ada', spied), await enter(roomId, 'Bob', spied)];
  const keys = () => Promise.all(both.map((page) => page.ask('encryption')));
  const negotiations = () => Promise.all(both.map((page) => page.ask('negotiations')));
  const [ada, bob] = both as [ParticipantPage, ParticipantPage];
  /** Pictures and sound that are heard, not only packets. */
  const isBack = async () => {
    await Promise.all([plays(ada, 'Bob'), plays(bob, 'Ada'), hears(ada), hears(bob)]);
    expect([await ada.ask('undecryptable'), await bob.ask('undecryptable')]).toEqual([[], []]);
  };
  await isBack();
  const before = { keys: await keys(), negotiations: await negotiations() };
  await Promise.all(both.map(handedOver));
  await gateways[0]!.stop();
  await eventually(async () => (await ada.events()).some(({ name, what }) => name === 'state' && what === 'connected'));
  await isBack();
  // The same peer connections continue.
  expect(await negotiations()).toEqual(before.negotiations);
  stage.janus.kill('SIGKILL');
  await eventually(async () => (await ada.ask('mediaState')) === 'down');
  await stage.janus.start();
  await isBack();
  await ada.ask('send', 'still here');
  await eventually(async () =>
    (await bob.events()).some(({ name, what }) => name === 'message' && what.data === 'still here'),
  );
  expect(await keys()).toEqual(before.keys);
  const nonces = (await Promise.all(both.map((page) => page.ask<Spied>('spied', 'notes')))).flatMap(
    (one) => one.nonces,
  );
  expect(nonces.length).toBeGreaterThan(300);
  expect(new Set(nonces).size).toBe(nonces.length);
  await gateways[1]!.stop();
});
