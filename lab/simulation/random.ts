/** A stream of pseudo-random numbers. Streams with different names are independent of each other. */
export interface Stream {
  /** In [0, 1). */
  next(): number;
  /** An integer from 0 to below `bound`. */
  below(bound: number): number;
  /** An integer from `from` to `to`. */
  between(from: number, to: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  fill<T extends NodeJS.TypedArray>(bytes: T): T;
}

/** @param name the same seed and name give the same stream. */
export function randomStream(seed: number, name: string): Stream {
  let state = hashOf(`${seed} ${name}`);
  // mulberry32
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const below = (bound: number): number => Math.floor(next() * bound);
  return {
    next,
    below,
    between: (from, to) => from + below(to - from + 1),
    chance: (probability) => next() < probability,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error('nothing to pick from');
      return item;
    },
    fill: (bytes) => {
      const view = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let at = 0; at < view.length; at += 1) view[at] = below(256);
      return bytes;
    },
  };
}

/** FNV-1a. */
export function hashOf(text: string, start = 0x811c9dc5): number {
  let hash = start;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash | 0;
}
