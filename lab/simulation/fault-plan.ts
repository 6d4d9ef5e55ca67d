import { RUN_AGE_MS_MAX } from '@callplane/core';
import type { Role } from './fleet.js';
import { Random } from '../src/random.js';

type Worker = 'cleanup-worker' | 'webhook-worker';

/** The states of a forward as statements enter them. */
export type ForwardState = 'opening' | 'up' | 'closing' | 'deleted';
type Loss = 'dies' | 'freezes' | 'is cut off';

/**
 * `outlive lease`: the worker freezes `afterCommits` commits after a claim, until another worker has its row.
 * `let lease expire`: all processes pause then, until the lease has just expired.
 * `crash after outcome`: the worker dies as soon as an outcome is committed.
 * `crash in last attempt`: a worker dies after it has claimed the last attempt of a run.
 * `stop after claim`: a supervisor stops the worker while its claim is on the way.
 * `freeze in join`: the gateway freezes between the read that decides a join and its write. Meanwhile a client ends the
 * room or removes the participant, and the gateway continues when that is accepted.
 * `lose at forward`: as soon as a forward enters the state, a media server, by its place, or the process that has written
 * it is lost for some time. A media server that dies loses its rooms.
 * `end at forward`: a client ends the room of a forward that a gateway begins to open.
 * `media fails`: the media server answers every request with an error, until all operations have failed or completed.
 */
export type Fault =
  | { do: 'crash'; role: Role; index: number; afterEffects: number; isAtOnce: boolean }
  | { do: 'freeze'; role: Role; index: number; afterEffects: number; forMs: number }
  | { do: 'outlive lease' | 'let lease expire'; role: Worker; index: number; afterCommits: number }
  | { do: 'crash after outcome'; role: Worker; index: number; afterOutcomes: number }
  | { do: 'crash in last attempt'; role: Worker }
  | { do: 'stop after claim'; role: 'webhook-worker'; index: number; afterClaims: number }
  | { do: 'freeze in join'; index: number; afterReads: number; until: 'an end' | 'a removal' }
  | { do: 'media fails' | 'end at forward' }
  | { do: 'drain'; index: number; atMs: number }
  | { do: 'redis away'; atMs: number; forMs: number }
  | { do: 'media away' | 'media hangs'; atMs: number; forMs: number }
  | { do: 'lose at forward'; state: ForwardState; lost: 'writer' | number; how: Loss; forMs: number }
  | { do: 'all pause'; atMs: number; forMs: number };

export const INSTANCES: Readonly<Record<Role, number>> = {
  api: 2,
  'cleanup-worker': 2,
  'webhook-worker': 2,
  gateway: 2,
  recorder: 2,
};
/** The usual number of interesting statements in a run of one process. */
const EFFECTS_MAX: Readonly<Record<Role, number>> = {
  api: 15,
  'cleanup-worker': 25,
  'webhook-worker': 40,
  gateway: 12,
  recorder: 12,
};
/** Just below and just above the time-outs of PostgreSQL, of instances, and of leases. */
const FREEZES_MS = [2000, 12_000, 16_000, 35_000, 119_000, 121_000, 180_000];

/**
 * The faults of a seed. Kinds that came later have random numbers of their own, so that they do not change the others.
 * @param random the stream of the plan.
 */
export function faultsOf(seed: number, random: Random): Fault[] {
  if (random.chance(0.1)) return [];
  return [
    ...anyFaultsOf(random),
    ...leaseFaultsOf(new Random(seed).fork('leases')),
    ...drainsOf(new Random(seed).fork('drains')),
    ...outcomeFaultsOf(new Random(seed).fork('outcomes')),
    ...joinFaultsOf(new Random(seed).fork('joins')),
    ...longFaultsOf(new Random(seed).fork('long')),
    ...recorderFaultsOf(new Random(seed).fork('recorders')),
  ];
}

/** @param random of its own. The number of media servers may be 1: then there is no forward. */
export function forwardFaultsOf(random: Random, mediaServers: number): Fault[] {
  if (mediaServers === 1) return [];
  const losses = Array.from({ length: random.between(0, 3) }, (): Fault => ({
    do: 'lose at forward',
    state: random.pick<ForwardState>(['opening', 'up', 'up', 'closing', 'deleted']),
    lost: random.pick(['writer', 0, 1]),
    how: random.pick<Loss>(['dies', 'freezes', 'is cut off']),
    // Just below and well above the time after which a room leaves the server.
    forMs: random.pick([1000, 4000, 12_000]),
  }));
  return random.chance(0.3) ? [...losses, { do: 'end at forward' }] : losses;
}

function anyFaultsOf(random: Random): Fault[] {
  const anyone = (): { role: Role; index: number; afterEffects: number } => {
    const role = random.pick<Role>([
      'api',
      'cleanup-worker',
      'cleanup-worker',
      'webhook-worker',
      'webhook-worker',
      'gateway',
    ]);
    return { role, index: random.between(1, INSTANCES[role]), afterEffects: random.between(1, EFFECTS_MAX[role]) };
  };
  return Array.from({ length: random.between(1, 6) }, (): Fault => {
    const span = { atMs: random.between(500, 15_000), forMs: random.between(1000, 12_000) };
    const kind = random.below(10);
    if (kind < 5) return { do: 'crash', ...anyone(), isAtOnce: random.chance(0.7) };
    if (kind < 7) return { do: 'freeze', ...anyone(), forMs: random.pick(FREEZES_MS) };
    if (kind === 7) return { do: 'redis away', ...span };
    if (kind === 8) return { do: random.pick(['media away', 'media hangs']), ...span };
    return { do: 'all pause', atMs: span.atMs, forMs: random.pick([20_000, 130_000]) };
  });
}

function recorderFaultsOf(random: Random): Fault[] {
  return [1, 2].flatMap((index): Fault[] => {
    const who = { role: 'recorder', index, afterEffects: random.between(1, EFFECTS_MAX.recorder) } as const;
    if (random.chance(0.3)) return [{ do: 'crash', ...who, isAtOnce: random.chance(0.7) }];
    return random.chance(0.3) ? [{ do: 'freeze', ...who, forMs: random.pick(FREEZES_MS) }] : [];
  });
}

/** A freeze at a random statement hits the few steps between a claim and its outcome in one of a hundred runs. */
function leaseFaultsOf(random: Random): Fault[] {
  if (random.chance(0.5)) return [];
  const role = random.pick<Worker>(['cleanup-worker', 'cleanup-worker', 'webhook-worker']);
  // An attempt of a clean-up worker commits at most twice between the two.
  const afterCommits = role === 'cleanup-worker' ? random.pick([0, 1, 1, 2, 2]) : random.between(0, 4);
  return [{ do: 'outlive lease', role, index: random.between(1, INSTANCES[role]), afterCommits }];
}

function drainsOf(random: Random): Fault[] {
  const index = random.between(1, INSTANCES.gateway);
  return random.chance(0.4) ? [{ do: 'drain', index, atMs: random.between(1000, 20_000) }] : [];
}

/** Faults around claims and outcomes that a random statement seldom meets. */
function outcomeFaultsOf(random: Random): Fault[] {
  const faults: Fault[] = [];
  const index = (): number => random.between(1, 2);
  if (random.chance(0.3)) {
    faults.push({ do: 'let lease expire', role: 'cleanup-worker', index: index(), afterCommits: random.between(0, 2) });
  }
  if (random.chance(0.5)) {
    const role = random.pick<Worker>(['cleanup-worker', 'webhook-worker']);
    faults.push({ do: 'crash after outcome', role, index: index(), afterOutcomes: random.between(1, 3) });
  }
  if (random.chance(0.25)) {
    faults.push({ do: 'stop after claim', role: 'webhook-worker', index: index(), afterClaims: random.between(1, 4) });
  }
  return faults;
}

function joinFaultsOf(random: Random): Fault[] {
  if (random.chance(0.5)) return [];
  const until = random.pick(['an end', 'a removal'] as const);
  return Array.from({ length: random.between(1, 2) }, (_, at): Fault => {
    return { do: 'freeze in join', index: at + 1, afterReads: random.between(1, 3), until };
  });
}

/** Faults that last through all attempts of a run, and through its greatest age. */
function longFaultsOf(random: Random): Fault[] {
  const faults: Fault[] = [];
  if (random.chance(0.1)) faults.push({ do: 'media fails' });
  if (random.chance(0.5)) faults.push({ do: 'crash in last attempt', role: 'cleanup-worker' });
  if (random.chance(0.5)) faults.push({ do: 'crash in last attempt', role: 'webhook-worker' });
  if (random.chance(0.06)) {
    // Just above the greatest age, a sweep ends the run; just below, the attempt that fails.
    const forMs = RUN_AGE_MS_MAX + random.pick([1000, -20_000]);
    faults.push({ do: 'all pause', atMs: random.between(18_000, 23_000), forMs });
  }
  return faults;
}
