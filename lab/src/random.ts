/** Random choices from a seed: the same seed gives the same choices. */
export class Random {
  /** From 0 to 1, without 1. */
  readonly next: () => number;

  /** @param salt goes before every text: a service remembers the keys of an earlier run with the same seed. */
  constructor(
    readonly seed: number,
    private readonly salt = '',
  ) {
    this.next = mulberry32(seed);
  }

  /** A whole number from 0 to below `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  /** A whole number, both bounds included. */
  between(min: number, max: number): number {
    return min + this.below(max - min + 1);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error('there is nothing to pick from');
    return list[this.below(list.length)] as T;
  }

  fill<T extends NodeJS.TypedArray>(bytes: T): T {
    const view = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at < view.length; at += 1) view[at] = this.below(256);
    return bytes;
  }

  /** Text for names and keys: the salt and 16 hexadecimal digits. */
  text(): string {
    return `${this.salt}${Buffer.from(this.fill(new Uint8Array(8))).toString('hex')}`;
  }

  /** Choices of their own for one part of a run, so that the timing of other parts does not change them. */
  fork(name: string): Random {
    return new Random(hashOf(`${this.seed} ${name}`), this.salt);
  }
}

/** FNV-1a. */
export function hashOf(text: string, start = 0x811c9dc5): number {
  let hash = start;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash | 0;
}

function mulberry32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
