/**
 * `npm run torture -- [--minutes 10] [--seed N] [--out FOLDER]`: runs the whole fleet on this machine under mixed load,
 * with faults chosen from the seed, writes histories of everything that clients and receivers saw, and checks them.
 * `--check FOLDER` checks the histories of an earlier run once more. `--base-url URL --key KEY` runs the load against a
 * deployment, without faults; `--key` once for each tenant.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { checkInvariants, Database } from '@callplane/db';
import { ensurePrograms, Failure, progress } from '../bootstrap.js';
import { Calls } from './calls.js';
import { checkHistory } from './check/check-history.js';
import { describeFinding } from './check/finding.js';
import { Caller } from './client.js';
import { readAll, untilSettled } from './final-reads.js';
import { FAKETIME, failuresIn, keepLogs, LEASE_MS, startFleet, type Fleet, type KnownTenant } from './fleet.js';
import { HistoryWriter } from './history-writer.js';
import { HISTORY_FILES, HISTORY_VERSION } from './history.js';
import { Hooks } from './hooks.js';
import { Nemesis } from './nemesis.js';
import { readOptions, type Options } from './options.js';
import { Random } from './random.js';
import { Receiver } from './receiver.js';
import { RoomLoop, type Known, type Shared } from './tenant-load.js';

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
const PROGRAMS = ['redis-server', 'nginx'];

const say = (line: string): void => console.log(line);

export async function main(args: string[]): Promise<void> {
  if (args[0] === '--check' && args[1] !== undefined) {
    process.exitCode = (await check(resolve(args[1]))) ? 0 : 1;
    return;
  }
  const options = readOptions(args);
  // The watchdog of the fleet stops its processes.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  if (existsSync(join(options.out, HISTORY_FILES.run)))
    throw new Failure(`${options.out} holds the history of another run. Name another folder with --out`);
  say(`seed ${options.seed}, ${options.minutes} minutes, histories in ${options.out}`);
  if (options.target === null) {
    const missing = await ensurePrograms(PROGRAMS, { say, step: progress(say) });
    if (missing.length > 0) throw new Failure(`The fleet needs ${missing.join(' and ')}`);
  }
  const problems = await torture(options);
  for (const problem of problems) say(`BROKEN  ${problem}`);
  const isHeld = await check(options.out);
  process.exitCode = isHeld && problems.length === 0 ? 0 : 1;
}

/** Prints what the history of a run says about each guarantee. */
async function check(folder: string): Promise<boolean> {
  const findings = await checkHistory(folder);
  for (const finding of findings) say(describeFinding(finding));
  return findings.every(({ verdict }) => verdict !== 'broken');
}

/** @returns what was found inside of the fleet. What clients saw is in the history. */
async function torture(options: Options): Promise<string[]> {
  const { minutes, seed, out, target } = options;
  const random = new Random(seed);
  const history = new HistoryWriter(out);
  const fleet = target === null ? await startFleet(TENANTS, say) : null;
  const baseUrl = fleet?.baseUrl ?? target?.baseUrl.replace(/\/$/, '').replace(/\/v1$/, '') ?? '';
  const caller = new Caller(baseUrl, history);
  const calls = new Calls(`${baseUrl.replace(/^http/, 'ws')}/v1/signaling`, history);
  const receiver = new Receiver(history, random.fork('receiver'));
  try {
    const tenants = fleet?.tenants ?? (await tenantsOf(baseUrl, target?.keys ?? []));
    history.write('run', {
      atMs: 0,
      version: HISTORY_VERSION,
      seed,
      minutes,
      baseUrl,
      hasNemesis: fleet !== null,
      tenants: tenants.map(({ name, projectId, environmentId }) => ({ name, projectId, environmentId })),
      settings: { leaseMs: fleet === null ? null : LEASE_MS, graceMs: null },
    });
    const startedAt = new Date(Date.now() - 1000).toISOString();
    const hasHooks = fleet !== null || target?.receiverUrl !== undefined;
    const parts = await startTenants({ tenants, random, caller, receiver, hasHooks, target });
    await runLoad({ parts, random, caller, calls, history, fleet, minutes, receiver });
    receiver.isCalm = true;
    for (const { hooks } of parts) await hooks?.hurry(startedAt);
    const readers = parts.map(({ tenant }) => ({ caller, tenant }));
    const reached = await untilSettled(readers, SETTLED_WITHIN_MS);
    history.mark('settled', { reached });
    caller.phase = 'final';
    history.mark('final reads began');
    await Promise.all(
      parts.map(({ tenant, known, hooks }) => readAll({ caller, tenant }, known, hooks?.endpointIds ?? [])),
    );
    history.mark('final reads ended');
    const problems = fleet === null ? [] : await lookInside(fleet, history);
    history.mark('finished');
    say(
      `requests by status: ${[...caller.statuses]
        .sort()
        .map(([status, count]) => `${status} ${count}`)
        .join(', ')}`,
    );
    say(
      `rooms ${parts.reduce((sum, { known }) => sum + known.rooms.size, 0)}, sessions ${calls.welcomed}, deliveries received ${receiver.received}`,
    );
    if (!reached) problems.push('operations or deliveries are still open');
    return problems;
  } finally {
    await calls.close();
    await receiver.close();
    if (fleet !== null) keepLogs(fleet.instances, join(out, 'logs'));
    await fleet?.close();
    await history.close();
  }
}

interface Part {
  tenant: KnownTenant;
  known: Known;
  hooks: Hooks | null;
}

async function tenantsOf(baseUrl: string, keys: readonly string[]): Promise<KnownTenant[]> {
  return Promise.all(
    keys.map(async (key, n) => {
      const response = await fetch(`${baseUrl}/v1/`, { headers: { authorization: `Bearer ${key}` } });
      if (!response.ok) throw new Failure(`GET ${baseUrl}/v1/ answered ${response.status} for key ${n + 1}`);
      const { projectId, environmentId } = (await response.json()) as { projectId: string; environmentId: string };
      return { name: String.fromCodePoint(97 + n), projectId, environmentId, key };
    }),
  );
}

async function startTenants(given: {
  tenants: readonly KnownTenant[];
  random: Random;
  caller: Caller;
  receiver: Receiver;
  hasHooks: boolean;
  target: Options['target'];
}): Promise<Part[]> {
  const { tenants, random, caller, receiver, hasHooks, target } = given;
  if (hasHooks) await receiver.listen(target?.receiverUrl);
  const parts = tenants.map((tenant): Part => {
    const known = {
      rooms: new Set<string>(),
      removals: new Map<string, string>(),
      participants: new Map<string, string>(),
    };
    return {
      tenant,
      known,
      hooks: hasHooks ? new Hooks(caller, receiver, tenant, random.fork(`hooks ${tenant.name}`)) : null,
    };
  });
  for (const { hooks } of parts) await hooks?.register();
  return parts;
}

/** Load, then load and faults, then load alone. */
async function runLoad(given: {
  parts: readonly Part[];
  random: Random;
  caller: Caller;
  calls: Calls;
  history: HistoryWriter;
  fleet: Fleet | null;
  minutes: number;
  receiver: Receiver;
}): Promise<void> {
  const { parts, random, caller, calls, history, fleet, minutes } = given;
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
  const phases = async (): Promise<void> => {
    await delay(CALM_MS.before);
    if (fleet === null) await delay(minutes * 60_000);
    else await runFaults(fleet, history, random, minutes);
    await delay(CALM_MS.after);
    isOver = true;
  };
  try {
    await Promise.all([phases(), ...running]);
  } finally {
    isOver = true;
  }
  history.mark('load ended');
}

async function runFaults(fleet: Fleet, history: HistoryWriter, random: Random, minutes: number): Promise<void> {
  for (const { machine } of fleet.instances) {
    machine.onDied = (how) => {
      // An app that cannot start while its database is away is started again.
      if (!how.startsWith('start: ')) history.mark('app failed', { app: machine.name, message: how });
    };
  }
  const nemesis = new Nemesis(fleet, history, random.fork('nemesis'));
  if (!fleet.postgres.hasSmallDisks) say('no disk is filled: that needs root on Linux');
  if (!existsSync(FAKETIME)) say('no clock jumps: that needs libfaketime (apt-get install libfaketime)');
  history.mark('nemesis began');
  const untilMs = performance.now() + minutes * 60_000;
  await nemesis.run(() => performance.now() > untilMs);
  await fleet.postgres.inStep();
  history.mark('nemesis ended');
  say(`${nemesis.count} faults`);
}

/** The invariants of `rtc doctor --deep`, and the logs of the apps. */
async function lookInside(fleet: Fleet, history: HistoryWriter): Promise<string[]> {
  const database = new Database({ url: fleet.databaseUrl, poolMax: 1 });
  const results = await checkInvariants(database, INVARIANT_ROWS);
  await database.close();
  const broken = results.filter((result) => result.broken > 0);
  history.mark('invariants', { broken: broken.map(({ invariant, ids }) => ({ name: invariant.name, ids })) });
  const failures = failuresIn(fleet.instances);
  for (const failure of failures) history.mark('app failed', failure);
  return [
    ...broken.map(({ invariant, ids }) => `${invariant.name}: ${invariant.sentence}: ${ids.join(', ')}`),
    ...failures.map(({ app, message }) => `${app}: ${message}`),
  ];
}
