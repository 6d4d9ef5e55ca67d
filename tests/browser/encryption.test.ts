import { randomBytes } from 'node:crypto';
import { beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { openCall, type Call } from './call.testkit.js';
import { mediaFlows, type JoinOptions, type ParticipantPage } from './pages.testkit.js';

/** The frames that a worker has seen, as text, by side (`send`), stage (`in`) and codec. */
type SeenFrames = Record<string, string[] | undefined>;

let stage: Call['stage'];
let enter: Call['enter'];
beforeAll(async () => {
  ({ stage, enter } = await openCall());
});

const newKey = () => randomBytes(32).toString('base64url');
const under = (key: string, more: Partial<JoinOptions> = {}): Partial<JoinOptions> => ({
  encryption: { key },
  ...more,
});
const energyOf = async (page: ParticipantPage): Promise<number> =>
  (await page.ask<any[]>('statsOf', 'subscriber'))
    .filter(({ type, kind }) => type === 'inbound-rtp' && kind === 'audio')
    .reduce((sum, { totalAudioEnergy }) => sum + totalAudioEnergy, 0);
const framesOf = async (page: ParticipantPage, name: string): Promise<number> =>
  (await page.ask('received'))[name]?.frames ?? 0;
/** Resolves once more pictures of the participant are decoded. */
async function plays(page: ParticipantPage, name: string): Promise<void> {
  const before = await framesOf(page, name);
  await eventually(async () => (await framesOf(page, name)) > before + 3, { timeoutMs: 30_000 });
}
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
    const [sent, received] = await Promise.all([ada, bob].map((page) => page.ask<SeenFrames>('seenFrames')));
    for (const [codec, clearBytes] of [
      ['audio/opus', () => 1],
      ['video/VP8', (frame: string) => ((frame.charCodeAt(0) & 1) === 0 ? 10 : 1)],
    ] as const) {
      const [plain, encrypted] = [sent![`send in ${codec}`] ?? [], sent![`send out ${codec}`] ?? []];
      const [relayed, opened] = [received![`receive in ${codec}`] ?? [], received![`receive out ${codec}`] ?? []];
      const shared = (some: string[], others: string[]) => some.filter((frame) => others.includes(frame)).length;
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
  });
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
  const [ada, bob] = await Promise.all([
    enter(roomId, 'Ada', under(key, { publish: { audio: true, video, simulcast: true } })),
    // A busy machine must not choose the layers.
    enter(roomId, 'Bob', under(key, { adaptive: false })),
  ]);
  await mediaFlows([ada, bob]);
  const heightOf = async (page: ParticipantPage): Promise<number> => (await page.ask('meter')).height;
  for (const spatial of [0, 1, 0, 1]) {
    await bob.ask('receiveLayer', ['Ada', spatial]);
    await eventually(
      async () => {
        const height = await heightOf(bob);
        if (height > 180 !== (spatial === 1)) throw new Error(`a picture of ${height} lines in layer ${spatial}`);
        return true;
      },
      { timeoutMs: 30_000 },
    );
    await plays(bob, 'Ada');
  }
  await ada.ask('mute', 'camera');
  await ada.ask('unmute', 'camera');
  await plays(bob, 'Ada');
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

test('media comes back after the media server is killed, over other connections', async () => {
  const roomId = await stage.newEncryptedRoom();
  const key = newKey();
  const [ada, bob] = await Promise.all([enter(roomId, 'Ada', under(key)), enter(roomId, 'Bob', under(key))]);
  await mediaFlows([ada, bob]);
  stage.janus.kill('SIGKILL');
  await stage.janus.start();
  await mediaFlows([ada, bob]);
  expect([await ada.ask('undecryptable'), await bob.ask('undecryptable')]).toEqual([[], []]);
});
