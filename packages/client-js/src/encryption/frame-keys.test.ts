import { describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { FrameKeys, ReplayWindow, type Refused } from './frame-keys.js';
import { decodeHeader, type Bytes } from './sframe.js';

const CIPHER = 'AES-GCM-256';
const NONE = new Uint8Array();
const PLAIN = Uint8Array.from({ length: 40 }, (_, at) => at);
const rawKey = (byte: number): Bytes => new Uint8Array(32).fill(byte);

async function keysOf(sessionId: string, raw = rawKey(1), counterMax?: number): Promise<FrameKeys> {
  const keys = new FrameKeys(CIPHER, counterMax);
  keys.sender = sessionId;
  await keys.setKey(0, raw, true);
  return keys;
}
const reasonOf = (opening: Promise<Bytes>) =>
  opening.then(
    () => 'opened',
    (error: unknown) => (error as Refused).reason,
  );

describe('the keys of a call', () => {
  test('open what another participant seals, once', async () => {
    const [ada, bob] = await Promise.all([keysOf('ada'), keysOf('bob')]);
    const sealed = await ada.seal(NONE, PLAIN);
    const reasons = await Promise.all([1, 2].map(() => reasonOf(bob.open('ada', NONE, sealed))));
    // WebCrypto may end the second one first.
    expect(reasons.sort()).toEqual(['opened', 'replayed']);
    expect(await reasonOf(bob.open('ada', NONE, sealed))).toBe('replayed');
    expect(await bob.open('ada', NONE, await ada.seal(NONE, PLAIN))).toEqual(PLAIN);
  });

  test('refuse bytes that are cut, changed, of another track or session, or sealed with another key', async () => {
    const [ada, bob, eve] = await Promise.all([keysOf('ada'), keysOf('bob'), keysOf('ada', rawKey(2))]);
    const camera = Uint8Array.of(1);
    const sealed = await ada.seal(camera, PLAIN);
    for (let length = 0; length < sealed.length; length += 1) {
      expect(await reasonOf(bob.open('ada', camera, sealed.slice(0, length)))).not.toBe('opened');
      const changed = sealed.slice();
      changed[length]! ^= 1;
      expect(await reasonOf(bob.open('ada', camera, changed))).not.toBe('opened');
    }
    expect(await reasonOf(bob.open('ada', Uint8Array.of(2), sealed))).toBe('wrong_key');
    expect(await reasonOf(bob.open('carl', camera, sealed))).toBe('wrong_key');
    expect(await reasonOf(bob.open('ada', camera, await eve.seal(camera, PLAIN)))).toBe('wrong_key');
    expect(await reasonOf(bob.open('ada', camera, sealed))).toBe('opened');
    // Also once the sender is known.
    expect(await reasonOf(bob.open('carl', camera, await ada.seal(camera, PLAIN)))).toBe('wrong_key');
  });

  test('accept no frame again after another key under the same id, or after the same key', async () => {
    const [ada, bob] = await Promise.all([keysOf('ada'), keysOf('bob')]);
    const sealed = await ada.seal(NONE, PLAIN);
    await bob.open('ada', NONE, sealed);
    await bob.setKey(0, rawKey(1), true);
    expect(await reasonOf(bob.open('ada', NONE, sealed))).toBe('replayed');
    await Promise.all([ada, bob].map((keys) => keys.setKey(0, rawKey(2), true)));
    expect(await reasonOf(bob.open('ada', NONE, sealed))).toBe('wrong_key');
    // The new key starts with counters of its own.
    expect(await reasonOf(bob.open('ada', NONE, await ada.seal(NONE, PLAIN)))).toBe('opened');
    await Promise.all([ada, bob].map((keys) => keys.setKey(0, rawKey(1), true)));
    expect(await reasonOf(bob.open('ada', NONE, sealed))).toBe('replayed');
    expect(await reasonOf(bob.open('ada', NONE, await ada.seal(NONE, PLAIN)))).toBe('opened');
  });

  test('follow a ratchet and a rotation of others, but not to an earlier key', async () => {
    const [ada, bob] = await Promise.all([keysOf('ada'), keysOf('bob')]);
    const told: number[] = [];
    bob.onKey = ({ id }) => told.push(id);
    const old = await ada.seal(NONE, PLAIN);
    for (let step = 0; step < 3; step += 1) await ada.ratchet();
    expect(await reasonOf(bob.open('ada', NONE, await ada.seal(NONE, PLAIN)))).toBe('opened');
    expect(told).toEqual([3]);
    await bob.setKey(4, rawKey(9), false);
    expect(told).toEqual([3]);
    await ada.setKey(4, rawKey(9), true);
    expect(await reasonOf(bob.open('ada', NONE, await ada.seal(NONE, PLAIN)))).toBe('opened');
    expect(await reasonOf(bob.open('ada', NONE, old))).toBe('opened');
    expect(told).toEqual([3, 4]);
    // A fresh key is not the one that follows from the old one.
    const left = await keysOf('left');
    expect(await reasonOf(left.open('ada', NONE, await ada.seal(NONE, PLAIN)))).toBe('wrong_key');
  });

  test('go round the ring of ids more than once', async () => {
    const [ada, bob] = await Promise.all([keysOf('ada'), keysOf('bob')]);
    for (let step = 0; step < 40; step += 1) {
      await ada.ratchet();
      expect(await reasonOf(bob.open('ada', NONE, await ada.seal(NONE, PLAIN)))).toBe('opened');
    }
  });

  test('begin another key of the sender when its counters are used up', async () => {
    const [ada, bob] = await Promise.all(['ada', 'bob'].map((one) => keysOf(one, rawKey(1), 3)));
    const kids = new Set<bigint>();
    for (let count = 0; count < 10; count += 1) {
      const sealed = await ada!.seal(NONE, PLAIN);
      kids.add(decodeHeader(sealed)!.kid);
      expect(await reasonOf(bob!.open('ada', NONE, sealed))).toBe('opened');
    }
    expect(kids.size).toBe(4);
  });

  test('name the id of a key that is missing', async () => {
    const [ada, bob] = await Promise.all([keysOf('ada'), keysOf('bob')]);
    await ada.setKey(12, rawKey(3), true);
    await expect(bob.open('ada', NONE, await ada.seal(NONE, PLAIN))).rejects.toMatchObject({
      reason: 'unknown_key',
      keyId: 12,
    });
    await bob.setKey(12, rawKey(3), false);
    expect(await reasonOf(bob.open('ada', NONE, await ada.seal(NONE, PLAIN)))).toBe('opened');
  });

  test('never use a nonce twice, over rotations, ratchets, reloads and counters that are used up', async () => {
    const imported = new Map<CryptoKey, string>();
    const importKey = crypto.subtle.importKey.bind(crypto.subtle);
    const encrypt = crypto.subtle.encrypt.bind(crypto.subtle);
    const used = new Set<string>();
    let count = 0;
    jest.spyOn(crypto.subtle, 'importKey').mockImplementation((async (...given: Parameters<typeof importKey>) => {
      const key = await importKey(...given);
      imported.set(key, Buffer.from(given[1] as unknown as Uint8Array).toString('hex'));
      return key;
    }) as never);
    jest.spyOn(crypto.subtle, 'encrypt').mockImplementation((...given: Parameters<typeof encrypt>) => {
      const { iv } = given[0] as AesGcmParams;
      used.add(`${imported.get(given[1])} ${Buffer.from(iv as Uint8Array).toString('hex')}`);
      count += 1;
      return encrypt(...given);
    });
    const action = fc.oneof(
      fc.record({ type: fc.constant('seal' as const), who: fc.nat(2), frames: fc.integer({ min: 1, max: 9 }) }),
      fc.record({ type: fc.constant('key' as const), who: fc.nat(2), id: fc.nat(3), byte: fc.nat(2) }),
      fc.record({ type: fc.constant('ratchet' as const), who: fc.nat(2) }),
      fc.record({ type: fc.constant('reload' as const), who: fc.nat(2) }),
    );
    // Two of the three even have the same session, as a malicious server could give them.
    const sessions = ['same', 'same', 'other'];
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 30 }), async (actions) => {
        const enter = (who: number) => keysOf(sessions[who]!, rawKey(1), 5);
        const all = await Promise.all(sessions.map((_, who) => enter(who)));
        const sealing: Promise<unknown>[] = [];
        for (const one of actions) {
          const keys = all[one.who]!;
          if (one.type === 'seal') for (let at = 0; at < one.frames; at += 1) sealing.push(keys.seal(NONE, PLAIN));
          else if (one.type === 'key') await keys.setKey(one.id, rawKey(one.byte), true);
          else if (one.type === 'ratchet') await keys.ratchet();
          else all[one.who] = await enter(one.who);
        }
        await Promise.all(sealing);
        expect(used.size).toBe(count);
      }),
      { numRuns: 40 },
    );
    expect(count).toBeGreaterThan(100);
    jest.restoreAllMocks();
  });
});

test('a replay window accepts each counter once, in any order, and none that is too old', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.nat(40), fc.nat(9_000)), { maxLength: 200 }), (counters) => {
      const window = new ReplayWindow();
      const accepted = new Set<number>();
      let highest = -1;
      for (const counter of counters) {
        const isOld = counter <= highest - 4096;
        expect(window.accept(counter)).toBe(!isOld && !accepted.has(counter));
        if (!isOld) accepted.add(counter);
        highest = Math.max(highest, counter);
      }
    }),
  );
});
