import {
  bytesOf,
  decodeHeader,
  deriveKey,
  hkdf,
  open,
  seal,
  type Bytes,
  type Cipher,
  type SFrameKey,
} from './sframe.js';

/** Key ids are the numbers below this one. */
export const KEY_IDS = 16;
/** A key id this much ahead is later; any other one is earlier. */
const AHEAD_MAX = 7;
/** Counters that a receiver remembers: about 20 s of three layers, a screen and audio. */
const WINDOW = 4096;
const COUNTER_MAX = 2 ** 32;
const KEYS_REMEMBERED_MAX = 64;
const SENDERS_REMEMBERED_MAX = 4096;

/** `wrong_recipient`: a message for others, which the server has passed on. */
export type Refusal = 'unknown_key' | 'wrong_key' | 'replayed' | 'malformed' | 'wrong_recipient';

/** Bytes that are not opened. */
export class Refused extends Error {
  constructor(
    readonly reason: Refusal,
    readonly keyId?: number,
  ) {
    super(reason);
  }
}

/** The counters of one sender that were opened. */
export class ReplayWindow {
  #highest = -1;
  readonly #seen = new Uint8Array(WINDOW);

  /** @returns false if the counter was accepted before, or is too old to know */
  accept(counter: number): boolean {
    if (counter <= this.#highest - WINDOW) return false;
    for (let at = Math.max(this.#highest + 1, counter - WINDOW + 1); at <= counter; at += 1)
      this.#seen[at % WINDOW] = 0;
    this.#highest = Math.max(this.#highest, counter);
    if (this.#seen[counter % WINDOW] === 1) return false;
    this.#seen[counter % WINDOW] = 1;
    return true;
  }
}

/** The key of one sender, under one room key. */
interface Sender {
  identity: string;
  key: SFrameKey;
  window: ReplayWindow;
}

export interface RoomKey {
  id: number;
  raw: Bytes;
  fingerprint: string;
}

interface StoredKey extends RoomKey {
  /** By key id of SFrame. It outlives the key, so that a key that returns accepts no frame again. */
  senders: Map<bigint, Sender>;
}

/** The key that this participant seals with, and its next counter. */
interface OwnKey {
  kid: bigint;
  key: SFrameKey;
  next: number;
}

/** 24 digits that two people can compare by voice. */
async function fingerprintOf(raw: Bytes): Promise<string> {
  const words = new Uint32Array((await hkdf(raw, bytesOf('callplane fingerprint'), 24)).buffer);
  return [...words].map((word) => String(word % 10_000).padStart(4, '0')).join(' ');
}

const isAhead = (id: number, of: number): boolean => {
  const ahead = (id - of + KEY_IDS) % KEY_IDS;
  return ahead > 0 && ahead <= AHEAD_MAX;
};

/**
 * The keys of a room, and from them the key of each sender. The key id of SFrame has 59 random bits, drawn whenever a counter
 * starts, and the id of the room key.
 */
export class FrameKeys {
  /** Tells of the key that seals from now on. */
  onKey: (key: RoomKey) => void = () => undefined;
  #identity = '';
  readonly #ring = new Map<number, StoredKey>();
  readonly #senders = new Map<string, StoredKey['senders']>();
  #current: StoredKey | undefined;
  #own: Promise<OwnKey> | undefined;

  constructor(
    private readonly cipher: Cipher,
    private readonly counterMax = COUNTER_MAX,
  ) {}

  /** Whom this participant seals as. */
  set sender(identity: string) {
    if (this.#identity === identity) return;
    this.#identity = identity;
    this.#renew();
  }

  /** Adds a key, which replaces another one of its id. `use`: seals with it from now on. */
  async setKey(id: number, raw: Bytes, use: boolean): Promise<void> {
    const fingerprint = await fingerprintOf(raw);
    const before = this.#ring.get(id);
    if (before?.fingerprint !== fingerprint) {
      const senders = this.#senders.get(fingerprint) ?? new Map<bigint, Sender>();
      this.#senders.delete(fingerprint);
      this.#senders.set(fingerprint, senders);
      const [oldest] = this.#senders.keys();
      if (oldest !== undefined && this.#senders.size > KEYS_REMEMBERED_MAX) this.#senders.delete(oldest);
      this.#ring.set(id, { id, raw, fingerprint, senders });
      const current = this.#current;
      // Room for later ids: an old key must not be taken for the ratcheted one.
      if (current === undefined || isAhead(id, current.id)) {
        for (const other of this.#ring.keys()) if (other !== id && isAhead(other, id)) this.#ring.delete(other);
      }
    }
    if (use || this.#current?.id === id) this.use(id);
  }

  /** Seals with the key of this id from now on. */
  use(id: number): void {
    const key = this.#ring.get(id);
    if (key === undefined || key === this.#current) return;
    this.#current = key;
    this.#renew();
    this.onKey(key);
  }

  /** Seals with the key that follows from the present one. */
  async ratchet(): Promise<RoomKey> {
    if (this.#current === undefined) throw new Refused('unknown_key');
    const { id, raw } = await this.#ratcheted(this.#current, 1);
    await this.setKey(id, raw, true);
    return { id, raw, fingerprint: this.#ring.get(id)?.fingerprint ?? '' };
  }

  /** @param metadata is authenticated */
  async seal(metadata: Bytes, plain: Bytes): Promise<Bytes> {
    const { key, kid, counter } = await this.#claim();
    return seal(key, kid, counter, metadata, plain);
  }

  /**
   * @param identity of the sender
   * @throws Refused
   */
  async open(identity: string, metadata: Bytes, sealed: Bytes): Promise<Bytes> {
    const header = decodeHeader(sealed);
    if (header === undefined || header.counter >= BigInt(this.counterMax)) throw new Refused('malformed');
    const { kid } = header;
    const roomKey = await this.#roomKeyOf(Number(kid & BigInt(KEY_IDS - 1)));
    const sender = roomKey.senders.get(kid);
    if (sender !== undefined && sender.identity !== identity) throw new Refused('wrong_key');
    const key = sender?.key ?? (await this.#derive(roomKey.raw, identity, kid));
    const plain = await open(key, header, metadata, sealed).catch(() => {
      throw new Refused('wrong_key');
    });
    await this.#adopt(roomKey);
    this.#accept(roomKey, identity, kid, key, Number(header.counter));
    return plain;
  }

  /** Nothing interrupts this function: of two equal frames that are opened at once, one is accepted. */
  #accept(roomKey: StoredKey, identity: string, kid: bigint, key: SFrameKey, counter: number): void {
    const stored = this.#ring.get(roomKey.id);
    if (stored?.fingerprint !== roomKey.fingerprint) throw new Refused('unknown_key', roomKey.id);
    let known = stored.senders.get(kid);
    if (known === undefined) {
      known = { identity, key, window: new ReplayWindow() };
      stored.senders.set(kid, known);
      const [oldest] = stored.senders.keys();
      if (oldest !== undefined && stored.senders.size > SENDERS_REMEMBERED_MAX) stored.senders.delete(oldest);
    }
    if (!known.window.accept(counter)) throw new Refused('replayed');
  }

  async #roomKeyOf(id: number): Promise<StoredKey> {
    const stored = this.#ring.get(id);
    if (stored !== undefined) return stored;
    // Another participant may have ratcheted.
    const current = this.#current;
    if (current === undefined || !isAhead(id, current.id)) throw new Refused('unknown_key', id);
    const { raw } = await this.#ratcheted(current, (id - current.id + KEY_IDS) % KEY_IDS);
    return { id, raw, fingerprint: await fingerprintOf(raw), senders: new Map() };
  }

  /** Follows a participant who has proved a later key. */
  async #adopt({ id, raw }: StoredKey): Promise<void> {
    if (this.#current !== undefined && !isAhead(id, this.#current.id)) return;
    if (!this.#ring.has(id)) await this.setKey(id, raw, false);
    this.use(id);
  }

  async #ratcheted({ id, raw }: RoomKey, steps: number): Promise<{ id: number; raw: Bytes }> {
    let next = raw;
    for (let step = 0; step < steps; step += 1) next = await hkdf(next, bytesOf('callplane ratchet'), 32);
    return { id: (id + steps) % KEY_IDS, raw: next };
  }

  async #derive(raw: Bytes, identity: string, kid: bigint): Promise<SFrameKey> {
    return deriveKey(await hkdf(raw, bytesOf(`callplane sender ${identity}`), 32), kid, this.cipher);
  }

  #renew(): void {
    this.#own = this.#current === undefined ? undefined : this.#newOwn(this.#current);
  }

  async #newOwn({ id, raw }: RoomKey): Promise<OwnKey> {
    const [low, high] = crypto.getRandomValues(new Uint32Array(2)) as unknown as [number, number];
    // The highest bit is set, so that all headers have eight bytes of key id.
    const drawn = (BigInt(high) << 32n) | BigInt(low) | (1n << 63n);
    const kid = (drawn & ~BigInt(KEY_IDS - 1)) | BigInt(id);
    return { kid, key: await this.#derive(raw, this.#identity, kid), next: 0 };
  }

  /** @returns the present key, and a counter that nothing else gets */
  async #claim(): Promise<{ key: SFrameKey; kid: bigint; counter: bigint }> {
    for (;;) {
      const own = this.#own;
      if (own === undefined) throw new Refused('unknown_key');
      const ready = await own;
      if (own !== this.#own) continue;
      if (ready.next < this.counterMax) {
        const counter = BigInt(ready.next);
        ready.next += 1;
        return { key: ready.key, kid: ready.kid, counter };
      }
      this.#renew();
    }
  }
}
