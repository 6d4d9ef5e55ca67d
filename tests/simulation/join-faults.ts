import type { Fault } from './fault-plan.js';
import type { Effect } from './ports/gate.js';
import type { SimProcess } from './processes.js';
import type { World } from './world.js';

/** The read without locks that decides joins (packages/db/src/sessions/join-locks.ts). */
const READ_OF_JOINS = /AS "liveSession"/;
/** Writes that a join must not overlook. */
const OVERLOOKED = { 'an end': /SET status = 'ending'/, 'a removal': /UPDATE participants SET removed_at/ };
/** How long a gateway waits at most for such a write, in milliseconds. */
const FROZEN_MS = 8000;

/** Gateways that freeze between the read that decides a join and its write, until another process has written. */
export class JoinFaults {
  readonly #world: World;
  readonly #faults: readonly Fault[];
  readonly #freeze: (process: SimProcess, forMs: number, label: string) => void;
  /** Reads of joins by process. */
  readonly #reads = new Map<string, number>();
  /** What wakes a frozen gateway up. */
  readonly #frozen = new Map<SimProcess, RegExp>();

  constructor(
    world: World,
    faults: readonly Fault[],
    freeze: (process: SimProcess, forMs: number, label: string) => void,
  ) {
    this.#world = world;
    this.#faults = faults;
    this.#freeze = freeze;
  }

  /** Called after each statement. */
  onAnswer(process: SimProcess, { label, text }: Pick<Effect, 'label' | 'text'>): void {
    if (!READ_OF_JOINS.test(text)) return;
    const count = (this.#reads.get(process.name) ?? 0) + 1;
    this.#reads.set(process.name, count);
    for (const fault of this.#faults) {
      if (fault.do !== 'freeze in join' || `gateway ${fault.index}` !== process.name || fault.afterReads !== count)
        continue;
      this.#freeze(process, FROZEN_MS, label);
      this.#frozen.set(process, OVERLOOKED[fault.until]);
    }
  }

  /** Called after each statement that has changed something. */
  onEffect({ text }: Effect): void {
    for (const [process, awaited] of this.#frozen) {
      if (!awaited.test(text)) continue;
      this.#frozen.delete(process);
      process.frozenUntilMs = Math.min(process.frozenUntilMs, this.#world.nowMsValue);
      this.#world.note(`${process.name} wakes up`);
    }
  }
}
