import { setTimeout as delay } from 'node:timers/promises';
import { FAULTS, type FaultKind } from './faults.js';
import type { Fleet } from '../fleet/fleet.js';
import type { HistoryWriter } from './history-writer.js';
import type { Random } from '../random.js';

/** The pause after a fault, in milliseconds. */
const PAUSE_MS = { min: 500, max: 5000 };
/** Faults at the same time. */
const AT_ONCE = 2;

/**
 * Chooses faults from the seed, up to two at a time: each kind once, in any order, and then kinds by their weights. Two
 * faults never have the same target, and PostgreSQL has one at a time: the guarantees hold for the loss of one server of
 * a pair.
 */
export class Nemesis {
  count = 0;
  readonly counts: Map<FaultKind, number>;
  readonly #busy = new Set<string>();
  readonly #kinds: readonly FaultKind[];
  #hasFailed = false;

  /**
   * @param kinds to choose from. Kinds that this machine does not allow are left out.
   * @param wait for the length of a fault or a pause.
   */
  constructor(
    private readonly fleet: Fleet,
    private readonly history: HistoryWriter,
    private readonly random: Random,
    kinds: readonly FaultKind[],
    private readonly wait: (ms: number) => Promise<unknown> = delay,
  ) {
    this.#kinds = kinds.filter((kind) => {
      if (kind === 'fill') return fleet.postgres.hasSmallDisks;
      if (kind === 'clock') return fleet.instances.some(({ clockFile }) => clockFile !== null);
      return true;
    });
    this.counts = new Map(this.#kinds.map((kind) => [kind, 0]));
  }

  /**
   * Resolves when the time is over and every fault has ended.
   * @throws the error of the first fault that could not begin or end, after all others have ended.
   */
  async run(isOver: () => boolean): Promise<void> {
    const line = async (random: Random): Promise<void> => {
      while (!isOver() && !this.#hasFailed && this.#kinds.length > 0) {
        await this.wait(random.between(PAUSE_MS.min, PAUSE_MS.max));
        if (isOver()) return;
        await this.#do(this.#pick(random), random).catch((error: unknown) => {
          this.#hasFailed = true;
          throw error;
        });
      }
    };
    const lines = Array.from({ length: AT_ONCE }, (_, n) => line(this.random.fork(`line ${n}`)));
    const failed = (await Promise.allSettled(lines)).find(({ status }) => status === 'rejected');
    if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
  }

  /** A kind that has not happened yet, or any. */
  #pick(random: Random): FaultKind {
    const missing = this.#kinds.filter((kind) => this.counts.get(kind) === 0);
    return missing.length > 0 ? random.pick(missing) : pickOf(this.#kinds, random);
  }

  /** Writes begin and end down. A fault whose lock is taken is left out. */
  async #do(kind: FaultKind, random: Random): Promise<void> {
    const { action, target, lock, ms, begin, end } = await FAULTS[kind].choose(this.fleet, random);
    if (this.#busy.has(lock)) return;
    this.#busy.add(lock);
    this.count += 1;
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    const fault = `f${this.count}`;
    const write = (what: 'begin' | 'end', detail: string): void =>
      this.history.write('nemesis', { atMs: this.history.nowMs, fault, what, action, target, detail });
    write('begin', ms === 0 ? '' : `${ms} ms`);
    try {
      await begin();
      await this.wait(ms);
      await end?.();
      write('end', '');
    } catch (error) {
      write('end', `failed: ${(error as Error).message}`);
      throw new Error(`fault ${fault} (${action} ${target}) failed: ${(error as Error).message}`, { cause: error });
    } finally {
      this.#busy.delete(lock);
    }
  }
}

function pickOf(kinds: readonly FaultKind[], random: Random): FaultKind {
  let left = random.next() * kinds.reduce((sum, kind) => sum + FAULTS[kind].weight, 0);
  for (const kind of kinds) {
    left -= FAULTS[kind].weight;
    if (left < 0) return kind;
  }
  return random.pick(kinds);
}
