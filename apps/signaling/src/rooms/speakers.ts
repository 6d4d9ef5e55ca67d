/** Gateways repeat who talks at their publishers this often, in milliseconds. */
export const SPEAKERS_REPEATED_MS = 2000;
/** Age at which a report that its gateway has not repeated is dropped, in milliseconds. */
const FORGOTTEN_AFTER_MS = 3 * SPEAKERS_REPEATED_MS;
/** Tracks of one gateway that carry speech at a time. More are ignored. */
const TALKING_MAX = 64;
/** Tracks whose last speech is remembered. */
const REMEMBERED_MAX = 1000;

/** Tracks that carry speech, each with its level in dBov without the sign: 0 is the loudest, 127 silence. */
export type Talking = readonly (readonly [trackKey: string, level: number])[];

/**
 * Who talks in a room, and who talked last. Each gateway reports the complete list of its own publishers, and repeats
 * it: a lost report lasts for a moment only, and what a dead gateway reported is forgotten.
 */
export class Speakers {
  /** Grows when anything has changed. */
  version = 0;
  readonly #own = new Map<string, number>();
  readonly #ofGateway = new Map<string, { talking: ReadonlyMap<string, number>; atMs: number }>();
  readonly #lastMs = new Map<string, number>();

  /** A track of this gateway's publishers carries speech from now on, or (null) no longer. */
  note(trackKey: string, level: number | null, nowMs: number): void {
    if (level === null) {
      if (!this.#own.delete(trackKey)) return;
    } else {
      if (!this.#own.has(trackKey) && this.#own.size >= TALKING_MAX) return;
      this.#own.set(trackKey, level);
    }
    this.#remember(trackKey, nowMs);
    this.version += 1;
  }

  /** The report of another gateway: all tracks of its publishers that carry speech. */
  receive(gateway: string, talking: Talking, nowMs: number): void {
    const before = this.#ofGateway.get(gateway)?.talking ?? new Map<string, number>();
    const now = new Map(talking.slice(0, TALKING_MAX));
    if (now.size === 0) this.#ofGateway.delete(gateway);
    else this.#ofGateway.set(gateway, { talking: now, atMs: nowMs });
    for (const key of new Set([...before.keys(), ...now.keys()])) this.#remember(key, nowMs);
    if (!isSame(before, now)) this.version += 1;
  }

  /** Forgets gateways that have not reported for a while, and tracks that are gone. */
  expire(isPublished: (trackKey: string) => boolean, nowMs: number): void {
    for (const [gateway, { atMs }] of this.#ofGateway) {
      if (nowMs - atMs <= FORGOTTEN_AFTER_MS) continue;
      this.#ofGateway.delete(gateway);
      this.version += 1;
    }
    for (const key of this.#own.keys()) if (!isPublished(key)) this.note(key, null, nowMs);
    for (const key of this.#lastMs.keys()) if (!isPublished(key)) this.#lastMs.delete(key);
  }

  /** What this gateway reports. */
  get own(): Talking {
    return [...this.#own];
  }

  /** The level of a track that carries speech, else undefined. */
  levelOf(trackKey: string): number | undefined {
    const own = this.#own.get(trackKey);
    if (own !== undefined) return own;
    for (const { talking } of this.#ofGateway.values()) {
      const level = talking.get(trackKey);
      if (level !== undefined) return level;
    }
    return undefined;
  }

  /** When the track last carried speech; -Infinity if never. */
  lastMs(trackKey: string): number {
    return this.#lastMs.get(trackKey) ?? -Infinity;
  }

  get talking(): Talking {
    return [...this.#own, ...[...this.#ofGateway.values()].flatMap(({ talking }) => [...talking])];
  }

  #remember(trackKey: string, nowMs: number): void {
    this.#lastMs.delete(trackKey);
    this.#lastMs.set(trackKey, nowMs);
    const [oldest] = this.#lastMs.keys();
    if (this.#lastMs.size > REMEMBERED_MAX && oldest !== undefined) this.#lastMs.delete(oldest);
  }
}

function isSame(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): boolean {
  return a.size === b.size && [...b].every(([key, level]) => a.get(key) === level);
}

/** Reads the report of another gateway. @returns null if another version of this software has sent something else. */
export function parseTalking(value: unknown): Talking | null {
  if (!Array.isArray(value)) return null;
  const entries = value.filter(
    (entry): entry is [string, number] =>
      Array.isArray(entry) && typeof entry[0] === 'string' && typeof entry[1] === 'number',
  );
  return entries.length === value.length ? entries : null;
}
