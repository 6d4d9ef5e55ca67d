import { RUN_AGE_MS_MAX } from '@callplane/core';
import type { Role } from './fleet.js';
import type { Weather } from './ports/redis.js';
import { randomStream, type Stream } from './random.js';

/** What clients do. Times are milliseconds from the begin of the run. `staysAway`: it does not resume after a loss. */
export type Action = RoomAction | EndpointAction;

export type RoomAction = { readonly atMs: number; readonly room: number } & (
  | { do: 'create'; tenant: number; maxParticipants: number; isKeyed: boolean; isRepeated: boolean }
  | { do: 'update' }
  | { do: 'join'; who: number; staysAway?: boolean }
  | { do: 'publish' | 'leave' | 'lose' | 'resume' | 'remove' | 'permit' | 'erase'; who: number }
  | { do: 'end' }
  | { do: 'replay' | 'retry' }
);

/** `pause` disables the endpoint for some time. `recover` starts a recovery of all deliveries so far. */
export type EndpointAction = { readonly atMs: number; readonly endpoint: number } & (
  | { do: 'pause'; forMs: number }
  | { do: 'rotate' | 'recover' | 'remove endpoint' }
);

type Worker = 'cleanup-worker' | 'webhook-worker';

/**
 * `outlive lease`: the worker freezes `afterCommits` commits after a claim, until another worker has its row.
 * `let lease expire`: all processes pause then, until the lease has just expired.
 * `crash after outcome`: the worker dies as soon as an outcome is committed. Of a webhook worker, only outcomes count
 * for which another delivery of a room waits.
 * `crash in last attempt`: a worker dies after it has claimed the last attempt of a run.
 * `stop after claim`: a supervisor stops the worker while its claim is on the way.
 * `freeze in join`: the gateway freezes between the read that decides a join and its write, until another process
 * has accepted an end or a removal.
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
  | { do: 'media fails' }
  | { do: 'drain'; index: number; atMs: number }
  | { do: 'redis away'; atMs: number; forMs: number }
  | { do: 'media away' | 'media hangs'; atMs: number; forMs: number }
  | { do: 'all pause'; atMs: number; forMs: number };

export type ReceiverMode = 'ok' | 'fails' | 'hangs' | 'refuses' | 'breaks' | 'slow';

export interface ReceiverPlan {
  readonly tenant: number;
  readonly ordering: 'none' | 'room';
  readonly maxConcurrent: number | null;
  /** Modes one after another; each lasts for some time, and the last one to the end of the faults. */
  readonly phases: readonly { mode: ReceiverMode; forMs: number }[];
  /** Fails for ever. */
  readonly isDead: boolean;
}

export interface Plan {
  readonly seed: number;
  readonly weather: Weather;
  readonly receivers: readonly ReceiverPlan[];
  readonly actions: readonly Action[];
  readonly faults: readonly Fault[];
}

/** How long faults go on, in milliseconds. */
export const FAULTS_MS = 24_000;
export const TENANTS = 2;
export const INSTANCES: Readonly<Record<Role, number>> = {
  api: 2,
  'cleanup-worker': 2,
  'webhook-worker': 2,
  gateway: 2,
};
/** Of interesting statements: those that a run of one process usually has. */
const EFFECTS_MAX: Readonly<Record<Role, number>> = {
  api: 15,
  'cleanup-worker': 25,
  'webhook-worker': 40,
  gateway: 12,
};
/** Just below and just above the time-outs of PostgreSQL, of instances, and of leases. */
const FREEZES_MS = [2000, 12_000, 16_000, 35_000, 119_000, 121_000, 180_000];

/** Everything that a seed decides before the run. */
export function planOf(seed: number): Plan {
  const random = randomStream(seed, 'plan');
  const isStormy = random.chance(0.7);
  const returns = randomStream(seed, 'returns');
  return {
    seed,
    weather: isStormy
      ? { lose: random.pick([0, 0.1, 0.4, 1]), repeat: random.pick([0, 0.3]), delayMs: random.pick([5, 300, 4000]) }
      : { lose: 0, repeat: 0, delayMs: 5 },
    receivers: receiversOf(random),
    actions: [
      ...roomActionsOf(random).flatMap((action) => [
        action.do === 'join' ? { ...action, staysAway: returns.chance(0.2) } : action,
        ...returnsAfter(action, returns),
      ]),
      ...endpointActionsOf(randomStream(seed, 'endpoints')),
    ].sort((a, b) => a.atMs - b.atMs),
    faults: random.chance(0.1)
      ? []
      : [
          ...faultsOf(random),
          ...leaseFaultsOf(randomStream(seed, 'leases')),
          ...drainsOf(randomStream(seed, 'drains')),
          ...outcomeFaultsOf(randomStream(seed, 'outcomes')),
          ...joinFaultsOf(randomStream(seed, 'joins')),
          ...longFaultsOf(randomStream(seed, 'long')),
        ],
  };
}

/** Each plan has two receivers at least. */
function endpointActionsOf(random: Stream): EndpointAction[] {
  const actions: EndpointAction[] = [];
  const at = (): number => random.between(2000, 22_000);
  for (let endpoint = 0; endpoint < 2; endpoint += 1) {
    if (random.chance(0.3)) actions.push({ atMs: at(), endpoint, do: 'pause', forMs: random.between(0, 9000) });
    if (random.chance(0.2)) actions.push({ atMs: at(), endpoint, do: 'rotate' });
    if (random.chance(0.3)) actions.push({ atMs: at(), endpoint, do: 'recover' });
  }
  if (random.chance(0.1)) actions.push({ atMs: at(), endpoint: 1, do: 'remove endpoint' });
  return actions;
}

function receiversOf(random: Stream): ReceiverPlan[] {
  return Array.from({ length: random.between(2, 3) }, (_, index) => ({
    tenant: index % TENANTS,
    ordering: random.chance(0.6) ? 'room' : 'none',
    maxConcurrent: random.chance(0.2) ? 1 : null,
    isDead: random.chance(0.06),
    phases: Array.from({ length: random.between(1, 4) }, () => ({
      mode: random.pick<ReceiverMode>(['ok', 'ok', 'ok', 'fails', 'hangs', 'refuses', 'breaks', 'slow']),
      forMs: random.between(1000, 12_000),
    })),
  }));
}

function roomActionsOf(random: Stream): RoomAction[] {
  const actions: RoomAction[] = [];
  const add = (action: RoomAction): void => void actions.push(action);
  const at = (from: number, to: number): number => random.between(from, to);
  for (let room = 0; room < random.between(2, 4); room += 1) {
    const startMs = at(0, 4000);
    const isKeyed = random.chance(0.6);
    const maxParticipants = random.pick([1, 2, 2, 50]);
    const isRepeated = isKeyed && random.chance(0.5);
    add({ atMs: startMs, room, do: 'create', tenant: random.below(TENANTS), maxParticipants, isKeyed, isRepeated });
    const people = random.between(0, 4);
    for (let who = 0; who < people; who += 1) {
      const joinsMs = startMs + at(50, 9000);
      add({ atMs: joinsMs, room, who, do: 'join' });
      if (random.chance(0.2)) add({ atMs: joinsMs + at(0, 400), room, who, do: 'join' });
      if (random.chance(0.4)) add({ atMs: joinsMs + at(100, 3000), room, who, do: 'publish' });
      for (const [what, share] of [
        ['leave', 0.25],
        ['lose', 0.3],
        ['resume', 0.3],
        ['remove', 0.3],
        ['permit', 0.2],
        ['erase', 0.15],
      ] as const) {
        if (random.chance(share)) add({ atMs: joinsMs + at(20, 12_000), room, who, do: what });
      }
    }
    if (random.chance(0.4)) add({ atMs: startMs + at(500, 10_000), room, do: 'update' });
    const ends = random.chance(0.75) ? random.between(1, 2) : 0;
    const endsMs = startMs + at(500, 14_000);
    for (let times = 0; times < ends; times += 1) add({ atMs: endsMs + times * at(0, 2500), room, do: 'end' });
    if (random.chance(0.4)) add({ atMs: at(6000, 22_000), room, do: random.pick(['replay', 'retry']) });
  }
  return actions;
}

/** Those who were removed, or whose room has ended, try to come back with the token that they have. */
function returnsAfter(action: RoomAction, random: Stream): RoomAction[] {
  const { room, atMs } = action;
  const laterMs = atMs + random.between(30, 4000);
  if (action.do === 'remove' && random.chance(0.5)) return [{ atMs: laterMs, room, who: action.who, do: 'join' }];
  if (action.do === 'end' && random.chance(0.3)) return [{ atMs: laterMs, room, who: 0, do: 'join' }];
  return [];
}

function faultsOf(random: Stream): Fault[] {
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

/** A freeze at a random statement hits the few steps between a claim and its outcome in one of a hundred runs. */
function leaseFaultsOf(random: Stream): Fault[] {
  if (random.chance(0.5)) return [];
  const role = random.pick<Worker>(['cleanup-worker', 'cleanup-worker', 'webhook-worker']);
  // An attempt of a clean-up worker commits at most twice between the two.
  const afterCommits = role === 'cleanup-worker' ? random.pick([0, 1, 1, 2, 2]) : random.between(0, 4);
  return [{ do: 'outlive lease', role, index: random.between(1, INSTANCES[role]), afterCommits }];
}

function drainsOf(random: Stream): Fault[] {
  const index = random.between(1, INSTANCES.gateway);
  return random.chance(0.4) ? [{ do: 'drain', index, atMs: random.between(1000, 20_000) }] : [];
}

/** Faults around claims and outcomes that a random statement seldom meets. */
function outcomeFaultsOf(random: Stream): Fault[] {
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

function joinFaultsOf(random: Stream): Fault[] {
  if (random.chance(0.5)) return [];
  const until = random.pick(['an end', 'a removal'] as const);
  return Array.from({ length: random.between(1, 2) }, (_, at): Fault => {
    return { do: 'freeze in join', index: at + 1, afterReads: random.between(1, 3), until };
  });
}

/** Faults that last through all attempts of a run, and through its greatest age. */
function longFaultsOf(random: Stream): Fault[] {
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
