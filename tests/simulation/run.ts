import { newId, seal, type Tenant } from '@callplane/core';
import { createEnvironment, createProject, insertWebhookEndpoint } from '@callplane/db';
import { GRACE_MS } from './apps/cleanup-worker.js';
import { openDatabase } from './apps/tasks.js';
import { brokenInvariants, finalViolations, type Run, type Violation } from './checks.js';
import { Clients } from './clients.js';
import { Fleet, newProcess, type Role, type Transitions } from './fleet.js';
import { FAULTS_MS, INSTANCES, TENANTS, type Fault, type Plan } from './plan.js';
import { Gate } from './ports/gate.js';
import { SimMediaServer } from './ports/media.js';
import { useNetwork } from './ports/network.js';
import { useGate } from './ports/pool.js';
import type { Postgres } from './ports/postgres.js';
import { CALM, SimRedis } from './ports/redis.js';
import { running, type SimProcess } from './processes.js';
import { randomStream } from './random.js';
import { hostOf, SimReceivers } from './receivers.js';
import { real } from './globals.js';
import { MASTER_KEYS } from './secrets.js';
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
  readonly transitions: Transitions;
  readonly crashPoints: ReadonlySet<string>;
  readonly sent: ReadonlyMap<string, number>;
}

/** The begin of every run. */
const START_MS = Date.UTC(2030, 0, 1, 12);
/** Statements that only keep the fleet alive: a fault after them finds little. */
const DULL = /sweeps|due_floors|due_backlogs|signaling_instances|media_nodes|pg_stat_activity|LATERAL/;
/** Times at which the invariants are checked while faults go on. */
const LOOKS = 3;
/** Until a fleet without faults attempts a due row: 15 s, and the time of the attempt. */
const OVERDUE_MS = 25_000;
const ROUND_MS = 6000;
const ROUNDS_MAX = 120;
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
export const resets: (() => void)[] = ((globalThis as { simulationResets?: (() => void)[] }).simulationResets ??= []);

/** Runs one plan. */
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
  readonly #postgres: Postgres;
  readonly #url: string;
  readonly #plan: Plan;
  readonly #gate: Gate;
  readonly #redis: SimRedis;
  readonly #media: SimMediaServer;
  readonly #receivers: SimReceivers;
  readonly #fleet: Fleet;
  readonly #crashPoints = new Set<string>();
  readonly #interesting = new Map<string, number>();
  readonly #violations: Violation[] = [];
  #faultsGoOn = true;

  constructor(postgres: Postgres, url: string, plan: Plan) {
    const { seed } = plan;
    this.#postgres = postgres;
    this.#url = url;
    this.#plan = plan;
    this.world = new World(seed, START_MS);
    this.#gate = new Gate(this.world, postgres, seed);
    useGate(this.#gate);
    this.#receivers = new SimReceivers(this.world, plan.receivers);
    useNetwork(this.world, this.#receivers);
    this.#redis = new SimRedis(this.world, randomStream(seed, 'redis'));
    this.#media = new SimMediaServer(this.world);
    const parts = { world: this.world, redis: this.#redis, media: this.#media, databaseUrl: url };
    this.#fleet = new Fleet(this.#gate, parts, randomStream(seed, 'skews'));
  }

  async run(): Promise<Outcome> {
    const tenants = await this.#inside(newProcess('setup'), () => this.#setUp());
    for (const [role, count] of Object.entries(INSTANCES)) {
      for (let index = 1; index <= count; index += 1) this.#fleet.start(role as Role, index);
    }
    const { seed } = this.#plan;
    const clients = new Clients(this.#fleet, newProcess('clients'), tenants, randomStream(seed, 'clients'), (tenant) =>
      this.#deliveriesOf(tenants[tenant] as Tenant),
    );
    this.#redis.weather = this.#plan.weather;
    this.#gate.onEffect = (process, label) => this.#onEffect(process, label);
    for (const action of this.#plan.actions) {
      this.#planned(action.atMs, `a client begins: ${action.do}`, () => clients.perform(action));
    }
    for (const fault of this.#plan.faults) this.#schedule(fault);
    const backend = await this.#postgres.acquire('-c TimeZone=UTC');
    const run: Run = {
      plan: this.#plan,
      postgres: this.#postgres,
      fleet: this.#fleet,
      clients,
      receivers: this.#receivers,
      backend,
    };
    for (let look = 1; look <= LOOKS && this.#violations.length === 0; look += 1) {
      let isOver = false;
      this.#planned(FAULTS_MS / LOOKS, 'the invariants are checked', () => void (isOver = true));
      await this.#until(() => isOver);
      await backend.setTime(this.world.nowMsValue, seed);
      this.#violations.push(...(await brokenInvariants(run)));
    }
    if (this.#violations.length === 0) {
      await this.#settle(run);
      await backend.setTime(this.world.nowMsValue, seed);
      this.#violations.push(...(await finalViolations(run)));
    }
    this.#postgres.release(backend);
    return this.#outcome();
  }

  async end(): Promise<void> {
    for (const { process } of this.#fleet.instances.values()) {
      process.isAlive = false;
      this.world.forget(process);
      await this.#gate.abandon(process);
    }
  }

  #outcome(): Outcome {
    return {
      plan: this.#plan,
      violations: this.#violations,
      hash: (this.world.hash >>> 0).toString(16),
      trace: this.world.trace,
      steps: this.world.steps,
      statements: this.#gate.statements,
      simulatedMs: this.world.monotonicMs(),
      crashes: this.#fleet.crashes,
      transitions: this.#fleet.transitions,
      crashPoints: this.#crashPoints,
      sent: this.#gate.sent,
    };
  }

  /** Tenants and endpoints, made an hour before the run. */
  async #setUp(): Promise<Tenant[]> {
    const database = openDatabase(this.#url);
    const createdAt = new Date(START_MS - 3_600_000);
    const tenants: Tenant[] = [];
    for (let index = 0; index < TENANTS; index += 1) {
      const tenant = { projectId: newId('project'), environmentId: newId('environment') };
      await createProject(database.prisma, { id: tenant.projectId, name: 'Simulated', createdAt });
      const environment = { id: tenant.environmentId, projectId: tenant.projectId, name: 'simulated', createdAt };
      await createEnvironment(database.prisma, environment);
      tenants.push(tenant);
    }
    for (const [index, { tenant, ordering, maxConcurrent }] of this.#plan.receivers.entries()) {
      const id = newId('webhookEndpoint');
      const endpoint = {
        id,
        url: `https://${hostOf(index)}/hook`,
        events: ['*' as const],
        description: null,
        enabled: true,
        disabledReason: null,
        signingKeyVersion: 1,
        ordering,
        maxPerSecond: null,
        maxConcurrent,
        standardWebhooks: false,
        createdAt,
        updatedAt: createdAt,
      };
      const sealed = seal(MASTER_KEYS, `whsec_${Buffer.alloc(32, 5).toString('base64')}`, `webhook-secret:${id}:1`);
      await database.transaction((tx) => insertWebhookEndpoint(tx, tenants[tenant] as Tenant, endpoint, sealed));
    }
    return tenants;
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
    return this.#postgres.query<{ id: string; endpointId: string; replayCount: number }>(
      `SELECT id, endpoint_id AS "endpointId", replay_count AS "replayCount" FROM webhook_deliveries
       WHERE environment_id = $1 ORDER BY id`,
      [environmentId],
    );
  }

  #planned(ms: number, label: string, run: () => void | Promise<void>): void {
    this.world.add({ atMs: this.world.nowMsValue + ms, process: null, label, run, isPlanned: true });
  }

  #schedule(fault: Fault): void {
    if (fault.do === 'crash' || fault.do === 'freeze') return;
    const during = (begin: () => void, end: () => void): void => {
      this.#planned(fault.atMs, fault.do, begin);
      this.#planned(fault.atMs + fault.forMs, `no more ${fault.do}`, end);
    };
    if (fault.do === 'all pause') {
      this.#planned(fault.atMs, fault.do, () => (this.#faultsGoOn ? this.world.jump(fault.forMs) : undefined));
    } else if (fault.do === 'redis away') {
      during(
        () => (this.#redis.isAway = true),
        () => (this.#redis.isAway = false),
      );
    } else {
      during(
        () => (this.#media.state = fault.do === 'media away' ? 'away' : 'hanging'),
        () => (this.#media.state = 'up'),
      );
    }
  }

  async #onEffect(process: SimProcess, label: string): Promise<void> {
    if (!this.#faultsGoOn || DULL.test(label)) return;
    const count = (this.#interesting.get(process.name) ?? 0) + 1;
    this.#interesting.set(process.name, count);
    for (const fault of this.#plan.faults) {
      if (fault.do !== 'crash' && fault.do !== 'freeze') continue;
      if (`${fault.role} ${fault.index}` !== process.name || fault.afterEffects !== count) continue;
      if (fault.do === 'freeze') {
        this.world.note(`${process.name} freezes for ${fault.forMs} ms after ${label}`);
        process.frozenUntilMs = this.world.nowMsValue + fault.forMs;
        this.#crashPoints.add(`${label} | freeze`);
      } else if (fault.isAtOnce) {
        this.#crashPoints.add(`${label} | no answer`);
        await this.#fleet.crash(process, `before the answer of ${label}`);
      } else {
        this.#crashPoints.add(`${label} | later`);
        const crash = (): Promise<void> => this.#fleet.crash(process, `soon after ${label}`);
        this.world.after(this.world.random.between(0, 30), null, 'a crash is due', crash);
      }
    }
  }

  /** Ends all faults, and runs until nothing is pending. */
  async #settle({ clients, backend }: Run): Promise<void> {
    const { world } = this;
    this.#faultsGoOn = false;
    this.#redis.weather = CALM;
    this.#redis.isAway = false;
    this.#media.state = 'up';
    this.#receivers.isCalm = true;
    for (const { process } of this.#fleet.instances.values()) process.frozenUntilMs = 0;
    world.note('the faults end');
    let calmSinceMs = world.nowMsValue;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const untilMs = world.nowMsValue + ROUND_MS;
      await this.#until(() => world.nowMsValue >= untilMs);
      await backend.setTime(world.nowMsValue, this.#plan.seed);
      const { rows } = await backend.client.query<{ id: string; dueMs: number; isLeased: boolean }>(PENDING);
      const overdue = rows.filter(({ dueMs, isLeased }) => !isLeased && dueMs < world.nowMsValue - OVERDUE_MS);
      if (world.nowMsValue - calmSinceMs >= OVERDUE_MS && overdue.length > 0) {
        const detail = overdue.map(({ id }) => id).join(', ');
        this.#violations.push({ name: 'due-rows-are-attempted', detail });
        return;
      }
      if (rows.length === 0 && clients.pending === 0 && round > 2) break;
      const dueMs = rows.map((row) => row.dueMs);
      if (Math.min(...dueMs) <= world.nowMsValue + ROUND_MS || rows.length === 0) continue;
      // All at once, or each would need a round of its own.
      await world.jump(Math.max(...dueMs) - world.nowMsValue);
      calmSinceMs = world.nowMsValue;
    }
    // Until lost sessions have ended, after the grace.
    await world.jump(GRACE_MS - 5000);
    const untilMs = world.nowMsValue + 2 * ROUND_MS;
    await this.#until(() => world.nowMsValue >= untilMs);
  }
}

/** Open rows; a leased one is due when its lease ends. Parked deliveries wait for others. */
const PENDING = `
  SELECT id, (extract(epoch FROM coalesce(lease_expires_at, due_at)) * 1000)::float8 AS "dueMs",
    lease_expires_at > sim.now() AS "isLeased"
  FROM runtime_operations WHERE status = 'pending'
  UNION ALL
  SELECT id, (extract(epoch FROM CASE WHEN status = 'delivering' THEN lease_expires_at ELSE due_at END) * 1000)::float8,
    status = 'delivering' AND lease_expires_at > sim.now()
  FROM webhook_deliveries WHERE status IN ('pending', 'delivering') AND due_at < '9999-01-01'`;
