import type { Tenant } from '@callplane/core';
import { openDatabase } from './apps/tasks.js';
import { brokenInvariants, finalViolations } from './checks.js';
import { Clients, Operator, type KnownDelivery } from './clients.js';
import type { Run, Violation } from './delivery-checks.js';
import { INSTANCES } from './fault-plan.js';
import { Faults } from './faults.js';
import { Fleet, newProcess, type LoggedLines, type Role } from './fleet.js';
import { real } from './globals.js';
import { FAULTS_MS, type Plan } from './plan.js';
import { Gate } from './ports/gate.js';
import { SimMedia } from './ports/media.js';
import { useNetwork } from './ports/network.js';
import { useGate } from './ports/pool.js';
import type { Postgres } from './ports/postgres.js';
import { SimRedis } from './ports/redis.js';
import { running, type SimProcess } from './processes.js';
import { Random } from '../src/random.js';
import { SimReceivers } from './receivers.js';
import { settle } from './settle.js';
import { setUp } from './setup.js';
import { World } from './world.js';

export interface Outcome {
  readonly plan: Plan;
  readonly violations: readonly Violation[];
  readonly hash: string;
  readonly trace: readonly string[];
  readonly steps: number;
  readonly statements: number;
  readonly simulatedMs: number;
  readonly crashes: number;
  readonly logged: LoggedLines;
}

const START_MS = Date.UTC(2030, 0, 1, 12);
/** Times at which the invariants are checked during faults. */
const LOOKS = 3;
const STEPS_MAX = 60_000;
const LOADS_MAX = 2000;

let world: World | undefined;
/** The world of the run, for the replaced globals. */
export function currentWorld(): World {
  if (world === undefined) throw new Error('no simulation runs');
  return world;
}

/** The shared client of Prisma belongs to no process. Call it once, before the first run. */
export function preparePrisma(databaseUrl: string): void {
  void openDatabase(databaseUrl).prisma;
}

/** Functions that bring modules with a state of their own back to their begin. */
const resets: (() => void)[] = ((globalThis as { simulationResets?: (() => void)[] }).simulationResets ??= []);

export async function simulate(postgres: Postgres, databaseUrl: string, plan: Plan): Promise<Outcome> {
  for (const reset of resets) reset();
  await postgres.reset();
  const sim = new Simulation(postgres, databaseUrl, plan);
  world = sim.world;
  try {
    return await sim.run();
  } finally {
    await sim.end();
    world = undefined;
  }
}

class Simulation {
  readonly world: World;
  readonly #gate: Gate;
  readonly #redis: SimRedis;
  readonly #media: SimMedia;
  readonly #receivers: SimReceivers;
  readonly #fleet: Fleet;
  readonly #faults: Faults;
  readonly #operators = newProcess('operators');
  readonly #violations: Violation[] = [];

  constructor(
    private readonly postgres: Postgres,
    private readonly url: string,
    private readonly plan: Plan,
  ) {
    const { seed } = plan;
    this.world = new World(seed, START_MS);
    this.#gate = new Gate(this.world, postgres, seed);
    useGate(this.#gate);
    this.#receivers = new SimReceivers(this.world, plan.receivers);
    useNetwork(this.world, this.#receivers);
    this.#redis = new SimRedis(this.world, new Random(seed).fork('redis'));
    this.#media = new SimMedia(this.world, plan.mediaServers);
    const parts = { world: this.world, redis: this.#redis, media: this.#media, databaseUrl: url };
    this.#fleet = new Fleet(this.#gate, parts, new Random(seed).fork('skews'));
    this.#faults = new Faults(this.#fleet, this.#redis, this.#media, postgres, plan.faults);
  }

  async run(): Promise<Outcome> {
    const customers = await this.#inside(newProcess('setup'), () => setUp(this.url, START_MS, this.plan));
    for (const [role, count] of Object.entries(INSTANCES)) {
      for (let index = 1; index <= count; index += 1) this.#fleet.start(role as Role, index);
    }
    const { seed } = this.plan;
    const random = new Random(seed).fork('clients');
    const operator = new Operator(this.#operators, this.url);
    const clients = new Clients(this.#fleet, newProcess('clients'), customers, operator, random, (tenant) =>
      this.#deliveriesOf(customers.tenants[tenant] as Tenant),
    );
    this.#redis.weather = this.plan.weather;
    this.#gate.onEffect = (...effect) => this.#faults.onEffect(...effect);
    this.#gate.onAnswer = (...answer) => this.#faults.onAnswer(...answer);
    for (const action of this.plan.actions) {
      this.#faults.planned(action.atMs, `a client begins: ${action.do}`, () => clients.perform(action));
    }
    this.#faults.begin((...what) => clients.interfere(...what));
    const backend = await this.postgres.acquire('-c TimeZone=UTC');
    const run: Run = {
      plan: this.plan,
      postgres: this.postgres,
      fleet: this.#fleet,
      clients,
      receivers: this.#receivers,
      backend,
    };
    for (let look = 1; look <= LOOKS && this.#violations.length === 0; look += 1) {
      let isOver = false;
      this.#faults.planned(FAULTS_MS / LOOKS, 'the invariants are checked', () => void (isOver = true));
      await this.#until(() => isOver);
      await backend.setTime(this.world.nowMsValue, seed);
      this.#violations.push(...(await brokenInvariants(run)));
    }
    if (this.#violations.length === 0) {
      await this.#faults.thaw((isOver) => this.#until(isOver));
      this.#faults.end();
      this.#receivers.isCalm = true;
      this.#violations.push(...(await this.#settle(run)));
      await backend.setTime(this.world.nowMsValue, seed);
      this.#violations.push(...(await finalViolations(run)));
    }
    this.postgres.release(backend);
    return this.#outcome();
  }

  async end(): Promise<void> {
    for (const process of [this.#operators, ...[...this.#fleet.instances.values()].map((each) => each.process)]) {
      process.isAlive = false;
      this.world.forget(process);
      await this.#gate.abandon(process);
    }
  }

  async #settle(run: Run): Promise<Violation[]> {
    const until = (isOver: () => boolean): Promise<void> => this.#until(isOver);
    const unsettled = await settle(run, until);
    if (unsettled.length > 0 || !this.#faults.mend()) return unsettled;
    run.clients.repeatEnds();
    return settle(run, until);
  }

  #outcome(): Outcome {
    return {
      plan: this.plan,
      violations: this.#violations,
      hash: (this.world.hash >>> 0).toString(16),
      trace: this.world.trace,
      steps: this.world.steps,
      statements: this.#gate.statements,
      simulatedMs: this.world.monotonicMs(),
      crashes: this.#fleet.crashes,
      logged: this.#fleet.logged,
    };
  }

  async #inside<T>(process: SimProcess, work: () => Promise<T>): Promise<T> {
    let result: { value: T } | { error: unknown } | undefined;
    running.run(process, () => {
      work().then(
        (value) => (result = { value }),
        (error: unknown) => (result = { error }),
      );
    });
    // The interpreter of Prisma loads while it is used for the first time, which is no step.
    for (let waits = 0; result === undefined && waits < LOADS_MAX; waits += 1) {
      await this.#until(() => result !== undefined);
      await new Promise((resolve) => real.setTimeout(resolve, 5));
    }
    await this.#gate.abandon(process);
    if (result === undefined || 'error' in result) throw new Error(`${process.name} fails`, { cause: result });
    return result.value;
  }

  async #until(isOver: () => boolean): Promise<void> {
    const stepsMax = this.world.steps + STEPS_MAX;
    await this.world.runUntil(() => isOver() || this.world.steps > stepsMax);
    if (this.world.steps > stepsMax) this.#violations.push({ name: 'nothing-spins', detail: `${STEPS_MAX} steps` });
  }

  #deliveriesOf({ environmentId }: Tenant) {
    return this.postgres.query<KnownDelivery>(
      `SELECT id, endpoint_id AS "endpointId", replay_count AS "replayCount" FROM webhook_deliveries
       WHERE environment_id = $1 ORDER BY id`,
      [environmentId],
    );
  }
}
