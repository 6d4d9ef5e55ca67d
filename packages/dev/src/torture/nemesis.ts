import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cable } from './cable.js';
import { WEIGHTS, type FaultKind } from './fault-kinds.js';
import type { Fleet } from './fleet.js';
import type { HistoryWriter } from './history-writer.js';
import type { NemesisAction } from './history.js';
import type { Machine } from './machine.js';
import type { Random } from './random.js';

/** Duration of a fault, and the pause after it, in milliseconds. */
const FAULT_MS = { min: 500, max: 8000 };
const PAUSE_MS = { min: 500, max: 5000 };
/** Longest jump of a clock, in seconds. */
const JUMP_MAX = 600;
/** Faults at the same time. */
const AT_ONCE = 2;

/** One fault, from its begin to its end. */
interface Fault {
  action: NemesisAction;
  target: string;
  /** Faults with the same lock never happen at once; the second one is left out. */
  lock: string;
  ms: number;
  begin: () => unknown;
  end?: () => unknown;
}

/**
 * Chooses faults from the seed, up to two at a time. Two faults never have the same target, and PostgreSQL has one at a
 * time: the guarantees hold for the loss of one server of a pair.
 */
export class Nemesis {
  count = 0;
  readonly #busy = new Set<string>();
  readonly #kinds: readonly FaultKind[];
  #hasFailed = false;

  /**
   * @param kinds those that are chosen from. Kinds that this machine does not allow are left out.
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
  }

  /**
   * Resolves when the time is over and every fault has ended.
   * @throws the error of the first fault that could not begin or end, after all others have ended.
   */
  async run(isOver: () => boolean): Promise<void> {
    const line = async (random: Random): Promise<void> => {
      while (!isOver() && !this.#hasFailed && this.#kinds.length > 0) {
        await this.wait(random.from(PAUSE_MS.min, PAUSE_MS.max));
        if (isOver()) return;
        await this.#do(this.#faultOf(pickOf(this.#kinds, random), random)).catch((error: unknown) => {
          this.#hasFailed = true;
          throw error;
        });
      }
    };
    const lines = Array.from({ length: AT_ONCE }, (_, n) => line(this.random.fork(`line ${n}`)));
    const failed = (await Promise.allSettled(lines)).find(({ status }) => status === 'rejected');
    if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
  }

  #faultOf(kind: FaultKind, random: Random): Fault {
    const { postgres, redis, nginx, media, instances } = this.fleet;
    const redisMachines = [...redis.servers, ...redis.sentinels];
    const mediaMachines = [...media.januses, media.coturn];
    const nodes = postgres.nodes.map(({ machine }) => machine);
    const app = (): Machine => random.pick(instances).machine;
    switch (kind) {
      case 'kill-app':
        return this.#onMachine('kill', app(), random);
      case 'freeze-app':
        return this.#onMachine('freeze', app(), random);
      case 'restart-app':
        return this.#onMachine('restart', app(), random);
      case 'kill-redis':
        return this.#onMachine('kill', random.pick(redisMachines), random);
      case 'freeze-redis':
        return this.#onMachine('freeze', random.pick(redisMachines), random);
      case 'kill-nginx':
        return this.#onMachine('kill', nginx, random);
      case 'kill-media':
        return this.#onMachine('kill', random.pick(mediaMachines), random);
      case 'freeze-media':
        return this.#onMachine('freeze', random.pick(mediaMachines), random);
      case 'kill-postgres':
        return this.#onPostgres('kill', random.pick(nodes), random);
      case 'freeze-postgres':
        return this.#onPostgres('freeze', random.pick(nodes), random);
      case 'flush':
        return { action: 'flush', target: 'redis', lock: 'redis', ms: 0, begin: () => redis.flush() };
      case 'promote':
        return this.#promotion(random);
      case 'fill':
        return this.#fullDisk(random);
      case 'cut':
        return this.#cutCable(random);
      case 'clock':
        return this.#jump(random);
    }
  }

  /** Writes begin and end down. */
  async #do({ action, target, lock, ms, begin, end }: Fault): Promise<void> {
    if (this.#busy.has(lock)) return;
    this.#busy.add(lock);
    this.count += 1;
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

  #onMachine(action: 'kill' | 'freeze' | 'restart', machine: Machine, random: Random): Fault {
    const ms = random.from(FAULT_MS.min, FAULT_MS.max);
    const whole = { action, target: machine.name, lock: machine.name, ms };
    if (action === 'freeze') return { ...whole, begin: () => machine.freeze(), end: () => machine.thaw() };
    return {
      ...whole,
      begin: () => (action === 'kill' ? machine.kill() : machine.stop()),
      end: () => machine.start(),
    };
  }

  #onPostgres(action: 'kill' | 'freeze', machine: Machine, random: Random): Fault {
    const fault = this.#onMachine(action, machine, random);
    return {
      ...fault,
      lock: 'postgres',
      end: async () => {
        await fault.end?.();
        await this.fleet.postgres.inStep();
      },
    };
  }

  #promotion(random: Random): Fault {
    const { postgres } = this.fleet;
    const isDead = random.chance(0.5);
    return {
      action: 'promote',
      target: `primary ${isDead ? 'killed' : 'frozen'}`,
      lock: 'postgres',
      ms: random.from(0, 3000),
      begin: () => (isDead ? postgres.primary.machine.kill() : postgres.primary.machine.freeze()),
      end: () => postgres.promote(),
    };
  }

  #fullDisk(random: Random): Fault {
    const { postgres } = this.fleet;
    return {
      action: 'fill',
      target: postgres.primary.machine.name,
      lock: 'postgres',
      ms: random.from(2000, 6000),
      begin: () => postgres.fill(),
      end: async () => {
        postgres.empty();
        // A server without room for its log ends; its supervisor tries again until it starts.
        await postgres.primary.machine.start();
        await postgres.inStep();
      },
    };
  }

  #cutCable(random: Random): Fault {
    const { name, cables } = random.pick(this.#lines());
    return {
      action: 'cut',
      target: name,
      lock: name,
      ms: random.from(FAULT_MS.min, 2 * FAULT_MS.max),
      begin: () => cables.forEach((cable) => cable.cut()),
      end: () => cables.forEach((cable) => cable.heal()),
    };
  }

  /** The connections of single apps. */
  #lines(): { name: string; cables: readonly Cable[] }[] {
    return this.fleet.instances.flatMap(({ machine, database, front, media }) => [
      { name: `${machine.name} to postgres`, cables: database },
      ...(front === null ? [] : [{ name: `nginx to ${machine.name}`, cables: [front] }]),
      ...media.map((cable, n) => ({ name: `${machine.name} to janus ${n + 1}`, cables: [cable] })),
    ]);
  }

  #jump(random: Random): Fault {
    const { machine, clockFile } = random.pick(this.fleet.instances.filter((each) => each.clockFile !== null));
    const seconds = random.from(-JUMP_MAX, JUMP_MAX);
    const set = (offset: number): void => writeFileSync(clockFile ?? '', `${offset < 0 ? '' : '+'}${offset}\n`);
    return {
      action: 'clock',
      target: `${machine.name} by ${seconds} s`,
      lock: `clock ${machine.name}`,
      ms: random.from(FAULT_MS.min, FAULT_MS.max),
      begin: () => set(seconds),
      end: () => set(0),
    };
  }
}

function pickOf(kinds: readonly FaultKind[], random: Random): FaultKind {
  let left = random.next() * kinds.reduce((sum, kind) => sum + WEIGHTS[kind], 0);
  for (const kind of kinds) {
    left -= WEIGHTS[kind];
    if (left < 0) return kind;
  }
  return random.pick(kinds);
}
