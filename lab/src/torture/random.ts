import { randomFrom } from '@callplane/local-servers';

/** Random choices from a seed: the same seed gives the same choices. */
export class Random {
  /** From 0 to 1, without 1. */
  readonly next: () => number;

  /** @param salt goes before every text: a service remembers the keys of an earlier run with the same seed. */
  constructor(
    readonly seed: number,
    private readonly salt = '',
  ) {
    this.next = randomFrom(seed);
  }

  /** A whole number, both bounds included. */
  from(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error('there is nothing to pick from');
    return list[Math.floor(this.next() * list.length)] as T;
  }

  /** Text for names and keys: the salt and 16 hexadecimal digits. */
  text(): string {
    const digits = [this.next(), this.next()]
      .map((n) =>
        Math.floor(n * 2 ** 32)
          .toString(16)
          .padStart(8, '0'),
      )
      .join('');
    return `${this.salt}${digits}`;
  }

  /** Choices of their own for one part of a run, so that the timing of other parts does not change them. */
  fork(name: string): Random {
    let hash = this.seed ^ 0x811c9dc5;
    for (const character of name) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
    return new Random(hash, this.salt);
  }
}
