import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Fleet, Instance } from './fleet.js';
import type { HistoryWriter } from './history-writer.js';
import type { NemesisAction } from './history.js';
import type { Machine } from './machine.js';
import type { Random } from './random.js';

/** One kind of fault, and how often it is chosen. */
interface Kind {
  weight: number;
  /** Begins and ends one fault. */
  run(): Promise<void>;
}

/** Duration of a fault, and the pause after it, in milliseconds. */
const FAULT_MS = { min: 500, max: 8000 };
const PAUSE_MS = { min: 500, max: 5000 };
/** Longest jump of a clock, in seconds. */
const JUMP_MAX = 600;
/** Faults at the same time. */
const AT_ONCE = 2;

/**
 * Chooses faults from the seed, up to two at a time. Two faults never have the same target, and PostgreSQL has one at a
 * time: the guarantees hold for the loss of one server of a pair.
 */
export class Nemesis {
  count = 0;
  readonly #busy = new Set<string>();

  constructor(
    private readonly fleet: Fleet,
    private readonly history: HistoryWriter,
    private readonly random: Random,
  ) {}

  /** Resolves when the time is over and every fault has ended. */
  async run(isOver: () => boolean): Promise<void> {
    const line = async (random: Random): Promise<void> => {
      while (!isOver()) {
        await delay(random.from(PAUSE_MS.min, PAUSE_MS.max));
        if (isOver()) return;
        await pickOf(this.#kinds(random), random).run();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => line(this.random.fork(`line ${n}`))));
  }

  #kinds(random: Random): Kind[] {
    const { postgres, redis, nginx, instances } = this.fleet;
    const apps = instances.map(({ machine }) => machine);
    const redisMachines = [...redis.servers, ...redis.sentinels];
    const some = (list: readonly Machine[], action: 'kill' | 'freeze' | 'restart') => (): Promise<void> =>
      this.#onMachine(random.pick(list), action, random);
    const nodes = postgres.nodes.map(({ machine }) => machine);
    const kinds: Kind[] = [
      { weight: 6, run: some(apps, 'kill') },
      { weight: 5, run: some(apps, 'freeze') },
      { weight: 2, run: some(apps, 'restart') },
      { weight: 3, run: () => this.#cut(random) },
      { weight: 2, run: some(redisMachines, 'kill') },
      { weight: 2, run: some(redisMachines, 'freeze') },
      { weight: 1, run: () => this.#fault('flush', 'redis', 'redis', 0, () => redis.flush()) },
      { weight: 1, run: some([nginx], 'kill') },
      { weight: 1, run: some(nodes, 'kill') },
      { weight: 1, run: some(nodes, 'freeze') },
      { weight: 2, run: () => this.#promote(random) },
    ];
    if (postgres.hasSmallDisks) kinds.push({ weight: 1, run: () => this.#fill(random) });
    const clocks = instances.filter(({ clockFile }) => clockFile !== null);
    if (clocks.length > 0) kinds.push({ weight: 2, run: () => this.#jump(random.pick(clocks), random) });
    return kinds;
  }

  /**
   * Writes begin and end down.
   * @param lock faults with the same lock never happen at once; the second one is left out.
   */
  async #fault(
    action: NemesisAction,
    target: string,
    lock: string,
    ms: number,
    begin: () => unknown,
    end: () => unknown = () => undefined,
  ): Promise<void> {
    if (this.#busy.has(lock)) return;
    this.#busy.add(lock);
    this.count += 1;
    const fault = `f${this.count}`;
    const detail = ms === 0 ? '' : `${ms} ms`;
    const write = (what: 'begin' | 'end', text: string): void =>
      this.history.write('nemesis', { atMs: this.history.nowMs, fault, what, action, target, detail: text });
    write('begin', detail);
    try {
      await begin();
      await delay(ms);
      await end();
      write('end', '');
    } catch (error) {
      write('end', `failed: ${(error as Error).message}`);
      throw error;
    } finally {
      this.#busy.delete(lock);
    }
  }

  #onMachine(machine: Machine, action: 'kill' | 'freeze' | 'restart', random: Random): Promise<void> {
    const { postgres } = this.fleet;
    const isPostgres = postgres.nodes.some((node) => node.machine === machine);
    const lock = isPostgres ? 'postgres' : machine.name;
    const inStep = (): Promise<void> | undefined => (isPostgres ? postgres.inStep() : undefined);
    const end = {
      kill: () => machine.start().then(inStep),
      freeze: () => {
        machine.thaw();
        return inStep();
      },
      restart: () => machine.start(),
    }[action];
    const begin = { kill: () => machine.kill(), freeze: () => machine.freeze(), restart: () => machine.stop() }[action];
    return this.#fault(action, machine.name, lock, random.from(FAULT_MS.min, FAULT_MS.max), begin, end);
  }

  #promote(random: Random): Promise<void> {
    const { postgres } = this.fleet;
    const isDead = random.chance(0.5);
    const ms = random.from(0, 3000);
    const begin = (): void => (isDead ? postgres.primary.machine.kill() : postgres.primary.machine.freeze());
    return this.#fault('promote', `primary ${isDead ? 'killed' : 'frozen'}`, 'postgres', ms, begin, () =>
      postgres.promote(() => undefined),
    );
  }

  #fill(random: Random): Promise<void> {
    const { postgres } = this.fleet;
    return this.#fault(
      'fill',
      postgres.primary.machine.name,
      'postgres',
      random.from(2000, 6000),
      () => postgres.fill(),
      async () => {
        postgres.empty();
        // A server without room for its log ends; its supervisor tries again until it starts.
        await postgres.primary.machine.start();
        await postgres.inStep();
      },
    );
  }

  #cut(random: Random): Promise<void> {
    const { machine, database, front } = random.pick(this.fleet.instances);
    const isFront = front !== null && random.chance(0.5);
    const cables = isFront ? [front] : database;
    const target = isFront ? `nginx to ${machine.name}` : `${machine.name} to postgres`;
    return this.#fault(
      'cut',
      target,
      target,
      random.from(FAULT_MS.min, 2 * FAULT_MS.max),
      () => cables.forEach((cable) => cable.cut()),
      () => cables.forEach((cable) => cable.heal()),
    );
  }

  #jump({ machine, clockFile }: Instance, random: Random): Promise<void> {
    const seconds = random.from(-JUMP_MAX, JUMP_MAX);
    const set = (offset: number): void => writeFileSync(clockFile ?? '', `${offset < 0 ? '' : '+'}${offset}\n`);
    const target = `${machine.name} by ${seconds} s`;
    return this.#fault(
      'clock',
      target,
      `clock ${machine.name}`,
      random.from(FAULT_MS.min, FAULT_MS.max),
      () => set(seconds),
      () => set(0),
    );
  }
}

function pickOf(kinds: readonly Kind[], random: Random): Kind {
  let left = random.next() * kinds.reduce((sum, { weight }) => sum + weight, 0);
  for (const kind of kinds) {
    left -= kind.weight;
    if (left < 0) return kind;
  }
  return random.pick(kinds);
}
