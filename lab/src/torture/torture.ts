import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { checkInvariants, Database } from '@callplane/db';
import { Failure } from '../bootstrap.js';
import { signalingUrlOf } from '../client.js';
import { Calls } from './calls.js';
import { Caller, type Sender } from './caller.js';
import { deploymentOf } from './deployment.js';
import { readAll, untilSettled } from './final-reads.js';
import { ForwardWatch } from './forward-reads.js';
import { startFleet, type Fleet } from '../fleet/fleet.js';
import type { KnownTenant, Operator } from '../fleet/operator.js';
import { HistoryWriter } from './history-writer.js';
import { Hooks } from './hooks.js';
import { faketimeLibrary, LEASE_MS } from '../fleet/apps.js';
import { MediaLoop } from './media-load.js';
import { MoveLoop } from './move-load.js';
import { Nemesis } from './nemesis.js';
import type { Options } from './options.js';
import { Random } from '../random.js';
import { RecordingLoop } from './recording-load.js';
import { problemsOfRecordings } from './recording-reads.js';
import { RecordingReceiver } from './recording-receiver.js';
import type { Known, Shared } from './load.js';
import { RoomLoop } from './tenant-load.js';

const TENANTS = ['a', 'b', 'c'];
const LOOPS_PER_TENANT = 2;
/**
 * Load without faults before and after them, in milliseconds. Bounds of time are checked where no fault is near, so the
 * time before them must be longer than these bounds.
 */
const CALM_MS = { before: 40_000, after: 5000 };
/** Longer than two attempts of an operation whose worker dies, in milliseconds. */
const SETTLED_WITHIN_MS = 240_000;
const INVARIANT_ROWS = 100_000;

interface Part {
  tenant: KnownTenant;
  known: Known;
  hooks: Hooks | null;
}

interface Run {
  options: Options;
  tenants: readonly KnownTenant[];
  random: Random;
  history: HistoryWriter;
  caller: Caller;
  calls: Calls;
  receiver: RecordingReceiver;
  fleet: Fleet | null;
  /** Null without a fleet. */
  forwards: ForwardWatch | null;
  say: (line: string) => void;
}

/** @returns problems inside of the fleet. The history has the observations of clients. */
export async function torture(options: Options, say: (line: string) => void): Promise<string[]> {
  const { seed, out, target } = options;
  // A deployment knows the names and idempotency keys of earlier runs.
  const random = new Random(seed, target === null ? '' : `${randomUUID().slice(0, 8)}-`);
  const deployment = target === null ? null : await deploymentOf(target);
  const history = newHistory(out);
  say(`seed ${seed}, ${options.minutes} minutes, histories in ${out}`);
  const fleet = target === null ? await startFleet(TENANTS, say, options.bugs) : null;
  const { baseUrl, tenants } = (fleet ?? deployment) as Pick<Fleet, 'baseUrl' | 'tenants'>;
  const signalingUrl = deployment?.signalingUrl ?? signalingUrlOf(baseUrl);
  const caller = new Caller(baseUrl, history);
  const calls = new Calls(signalingUrl, history);
  const receiver = new RecordingReceiver(history, random.fork('receiver'));
  const forwards = fleet === null ? null : new ForwardWatch(fleet);
  const run: Run = { options, tenants, random, history, caller, calls, receiver, fleet, forwards, say };
  for (const { machine } of fleet?.instances ?? []) {
    machine.onDied = (how) => history.mark('app failed', { app: machine.name, message: `it ended: ${how}` });
  }
  try {
    return await play(run, baseUrl);
  } finally {
    await calls.close();
    await receiver.close();
    await forwards?.close();
    fleet?.keepLogs(join(out, 'logs'));
    await fleet?.close();
    await history.close();
  }
}

function newHistory(folder: string): HistoryWriter {
  try {
    return new HistoryWriter(folder);
  } catch (error) {
    throw new Failure(`--out: ${(error as Error).message}`);
  }
}

async function play(run: Run, baseUrl: string): Promise<string[]> {
  const { options, tenants, history, caller, receiver, fleet, forwards } = run;
  const { minutes, seed } = options;
  history.write('run', {
    atMs: 0,
    seed,
    minutes,
    baseUrl,
    hasNemesis: fleet !== null,
    tenants: tenants.map(({ name, projectId, environmentId }) => ({ name, projectId, environmentId })),
    settings: { leaseMs: fleet === null ? null : LEASE_MS },
  });
  const startedAt = new Date(Date.now() - 1000).toISOString();
  const parts = await startTenants(run, tenants);
  await runLoad(run, parts);
  receiver.isCalm = true;
  for (const { hooks } of parts) await hooks?.hurry(startedAt);
  const readers = parts.map(({ tenant, known }) => ({ caller, tenant, known }));
  const reached = await untilSettled(readers, SETTLED_WITHIN_MS);
  history.mark('settled', { reached });
  caller.phase = 'final';
  history.mark('final reads began');
  await Promise.all(
    parts.map(({ tenant, known, hooks }) => readAll({ caller, tenant }, known, hooks?.endpointIds ?? [])),
  );
  history.mark('final reads ended');
  const problems = fleet === null ? [] : await lookInside(fleet, history);
  if (forwards !== null) await lookAtForwards(run, forwards);
  history.mark('finished');
  if (fleet === null) for (const { hooks } of parts) await hooks?.remove();
  sum(run, parts);
  if (!reached) problems.push('operations or deliveries are still open');
  return problems;
}

async function lookAtForwards({ history, say }: Run, forwards: ForwardWatch): Promise<void> {
  const { sessions, opened } = forwards;
  const left = await forwards.left();
  const ports = await forwards.portsLeft();
  history.mark('forwards', { opened, left, ports });
  const kept = ports.length === 0 ? '' : `, whose ports ${ports.join(', ')} stay bound`;
  say(`sessions on a further media server ${sessions}, forwards ${opened}${kept}`);
}

function sum({ caller, calls, receiver, say }: Run, parts: readonly Part[]): void {
  const statuses = [...caller.statuses].sort().map(([status, count]) => `${status} ${count}`);
  say(`requests by status: ${statuses.join(', ')}`);
  const rooms = parts.reduce((count, { known }) => count + known.rooms.size, 0);
  say(`rooms ${rooms}, sessions ${calls.welcomed}, deliveries received ${receiver.received}`);
}

async function startTenants(run: Run, tenants: readonly KnownTenant[]): Promise<Part[]> {
  const { random, caller, receiver, fleet, options } = run;
  const hasHooks = fleet !== null || options.target?.receiverUrl !== undefined;
  if (hasHooks) await receiver.listen(options.target?.receiverUrl);
  const parts = tenants.map((tenant): Part => {
    const known = {
      rooms: new Set<string>(),
      operations: new Set<string>(),
      participants: new Map<string, string>(),
      recordings: fleet === null ? null : new Set<string>(),
    };
    const hooks = hasHooks ? new Hooks(caller, receiver, tenant, random.fork(`hooks ${tenant.name}`)) : null;
    return { tenant, known, hooks };
  });
  for (const { hooks } of parts) await hooks?.register();
  return parts;
}

/** Load, then load and faults, then load alone. */
async function runLoad(run: Run, parts: readonly Part[]): Promise<void> {
  const { random, caller, calls, history, fleet, forwards, options } = run;
  let isOver = false;
  const shared: Shared = { caller, calls, rooms: [], isOver: () => isOver };
  history.mark('load began');
  const running = parts.flatMap(({ tenant, known, hooks }) => {
    const loops = Array.from({ length: LOOPS_PER_TENANT }, (_, n) => {
      const name = `${tenant.name} rooms ${n + 1}`;
      return new RoomLoop(shared, tenant, known, random.fork(name), name).run();
    });
    return [...loops, hooks?.run(shared.isOver)];
  });
  if (forwards !== null) running.push(forwards.run(shared.isOver));
  const [first, second] = parts;
  if (second !== undefined) {
    const name = `${second.tenant.name} moves`;
    running.push(new MoveLoop(shared, second.tenant, second.known, random.fork(name), name).run());
  }
  if (first !== undefined) {
    const name = `${first.tenant.name} media`;
    running.push(new MediaLoop(shared, first.tenant, first.known, random.fork(name), name).run());
    const recordings = `${first.tenant.name} recordings`;
    if (fleet !== null) {
      running.push(new RecordingLoop(shared, first.tenant, first.known, random.fork(recordings), recordings).run());
    }
    if (fleet !== null) running.push(new KeyLoop(fleet.operator, caller, first.tenant, shared.isOver).run());
  }
  const phases = async (): Promise<void> => {
    try {
      await delay(CALM_MS.before);
      if (fleet === null) await delay(options.minutes * 60_000);
      else await runFaults(run, fleet);
      await delay(CALM_MS.after);
    } finally {
      isOver = true;
    }
  };
  // The load ends before the fleet is closed, also after a fault that failed.
  const ends = await Promise.allSettled([phases(), ...running]);
  const failed = ends.find(({ status }) => status === 'rejected');
  if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
  history.mark('load ended');
}

async function runFaults({ history, random, options, say }: Run, fleet: Fleet): Promise<void> {
  const nemesis = new Nemesis(fleet, history, random.fork('nemesis'), options.faults);
  if (!fleet.postgres.hasSmallDisks) say('no disk is filled: that needs root on Linux');
  if (faketimeLibrary() === null) say('no clock jumps: that needs libfaketime (apt-get install libfaketime)');
  history.mark('nemesis began');
  const untilMs = performance.now() + options.minutes * 60_000;
  await nemesis.run(() => performance.now() > untilMs);
  await fleet.postgres.inStep();
  history.mark('nemesis ended');
  say(`${nemesis.count} faults: ${[...nemesis.counts].map(([kind, count]) => `${kind} ${count}`).join(', ')}`);
}

/** Whether no fault explains a line of a log. */
const isFailure = (line: string): boolean => line.includes('"message":"process failed');

/** The invariants of `rtc doctor --deep`, and the logs of the apps. */
async function lookInside(fleet: Fleet, history: HistoryWriter): Promise<string[]> {
  const database = new Database({ url: fleet.databaseUrl, poolMax: 1 });
  const results = await checkInvariants(database, INVARIANT_ROWS);
  const problems = await problemsOfRecordings(database, fleet);
  await database.close();
  const broken = results.filter((result) => result.broken > 0);
  history.mark('invariants', { broken: broken.map(({ invariant, ids }) => ({ name: invariant.name, ids })) });
  for (const { machine, logFile } of fleet.instances)
    for (const line of readFileSync(logFile, 'utf8').split('\n').filter(isFailure))
      history.mark('app failed', { app: machine.name, message: line.slice(0, 500) });
  return [
    ...broken.map(({ invariant, ids }) => `${invariant.name}: ${invariant.sentence}: ${ids.join(', ')}`),
    ...problems,
  ];
}

/** Longer than a revoked key may be accepted, in milliseconds. */
const USED_FOR_MS = 9000;
const EVERY_MS = 500;
/** A key costs two runs of `rtc`. */
const PAUSE_MS = 15_000;

class KeyLoop {
  constructor(
    private readonly operator: Operator,
    private readonly caller: Caller,
    private readonly tenant: KnownTenant,
    private readonly isOver: () => boolean,
  ) {}

  async run(): Promise<void> {
    for (let n = 1; !this.isOver(); n += 1) {
      await this.#useAndRevoke(`${this.tenant.name} key ${n}`);
      for (let left = PAUSE_MS; left > 0 && !this.isOver(); left -= EVERY_MS) await delay(EVERY_MS);
    }
  }

  async #useAndRevoke(client: string): Promise<void> {
    // Without an answer of PostgreSQL nothing is known.
    const made = await this.operator.newKey(this.tenant.environmentId).catch(() => null);
    if (made === null) return;
    const from: Sender = { tenant: this.tenant.name, key: made.key, client };
    const use = (): Promise<unknown> => this.caller.call(from, 'GET', '/v1/');
    // Both instances of the API keep it in their memory now.
    for (let n = 0; n < 4; n += 1) await use();
    const isRevoked = await this.operator.rtc('keys', 'revoke', made.id).then(
      () => true,
      () => false,
    );
    if (!isRevoked) return;
    const { history } = this.caller;
    history.mark('key revoked', { client });
    const untilMs = history.nowMs + USED_FOR_MS;
    while (history.nowMs < untilMs) {
      await use();
      await delay(EVERY_MS);
    }
  }
}
