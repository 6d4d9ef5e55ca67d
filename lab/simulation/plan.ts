import { faultsOf, forwardFaultsOf, type Fault } from './fault-plan.js';
import type { Weather } from './ports/redis.js';
import { Random } from '../src/random.js';

/** Actions of clients, in milliseconds from the begin of the run. `staysAway`: it does not resume after a loss. */
export type Action = RoomAction | EndpointAction;

export type RoomAction = { readonly atMs: number; readonly room: number } & (
  | {
      do: 'create';
      tenant: number;
      maxParticipants: number;
      isKeyed: boolean;
      isRepeated: boolean;
      isRecorded?: boolean;
    }
  | { do: 'update' }
  | { do: 'join'; who: number; staysAway?: boolean }
  | { do: 'publish' | 'leave' | 'lose' | 'resume' | 'remove' | 'permit' | 'erase'; who: number }
  | { do: 'move'; who: number; to: number }
  | { do: 'record' | 'stop recordings' }
  | { do: 'end' }
  | { do: 'replay' | 'retry' }
);

/** `pause` disables the endpoint for some time. `recover` starts a recovery of all deliveries so far. */
export type EndpointAction = { readonly atMs: number; readonly endpoint: number } & (
  | { do: 'pause'; forMs: number }
  | { do: 'rotate' | 'recover' | 'remove endpoint' }
);

export type ReceiverMode = 'ok' | 'fails' | 'hangs' | 'refuses' | 'breaks' | 'slow';

export interface ReceiverPlan {
  readonly tenant: number;
  readonly ordering: 'none' | 'room';
  readonly maxConcurrent: number | null;
  /** Modes one after another; each lasts for some time, and the last one to the end of the faults. */
  readonly phases: readonly { mode: ReceiverMode; forMs: number }[];
  readonly isDead: boolean;
}

export interface Plan {
  readonly seed: number;
  readonly weather: Weather;
  /** More than one: rooms may use all of them, and their participants receive tracks. */
  readonly mediaServers: number;
  readonly receivers: readonly ReceiverPlan[];
  readonly actions: readonly Action[];
  readonly faults: readonly Fault[];
}

/** How long faults last, in milliseconds. */
export const FAULTS_MS = 24_000;
export const TENANTS = 2;
const ROOMS_MAX = 4;

/** Everything that a seed decides before the run. */
export function planOf(seed: number): Plan {
  const random = new Random(seed).fork('plan');
  const isStormy = random.chance(0.7);
  const returns = new Random(seed).fork('returns');
  const recordings = new Random(seed).fork('recordings');
  const moves = new Random(seed).fork('moves');
  const forwards = new Random(seed).fork('forwards');
  const mediaServers = forwards.between(1, 2);
  return {
    seed,
    mediaServers,
    weather: isStormy
      ? { lose: random.pick([0, 0.1, 0.4, 1]), repeat: random.pick([0, 0.3]), delayMs: random.pick([5, 300, 4000]) }
      : { lose: 0, repeat: 0, delayMs: 5 },
    receivers: receiversOf(random),
    actions: [
      ...roomActionsOf(random).flatMap((action) => [
        varied(action, returns, recordings),
        ...returnsAfter(action, returns),
        ...recordingsOf(action, recordings),
        ...movesAfter(action, moves),
      ]),
      ...endpointActionsOf(new Random(seed).fork('endpoints')),
      ...(mediaServers > 1 ? spreadRoomOf(forwards) : []),
    ].sort((a, b) => a.atMs - b.atMs),
    faults: [...faultsOf(seed, random), ...forwardFaultsOf(forwards, mediaServers)],
  };
}

/** Each plan has two receivers at least. */
function endpointActionsOf(random: Random): EndpointAction[] {
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

function receiversOf(random: Random): ReceiverPlan[] {
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

function roomActionsOf(random: Random): RoomAction[] {
  const actions: RoomAction[] = [];
  const add = (action: RoomAction): void => void actions.push(action);
  const at = (from: number, to: number): number => random.between(from, to);
  for (let room = 0; room < random.between(2, ROOMS_MAX); room += 1) {
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

/** A room whose participants are on all media servers. Some of them publish, and some leave for some time or for good. */
function spreadRoomOf(random: Random): RoomAction[] {
  const room = ROOMS_MAX;
  const options = { tenant: random.below(TENANTS), maxParticipants: 50, isKeyed: true, isRepeated: false };
  const actions: RoomAction[] = [{ atMs: random.between(0, 500), room, do: 'create', ...options }];
  const isOneServerLeft = random.chance(0.4);
  for (let who = 0; who < 4; who += 1) {
    const joinsMs = random.between(600, 4000);
    const later = (from: number, to: number) => joinsMs + random.between(from, to);
    actions.push({ atMs: joinsMs, room, who, do: 'join' });
    if (random.chance(0.6)) actions.push({ atMs: later(300, 3000), room, who, do: 'publish' });
    for (const what of ['publish', 'lose', 'resume', 'leave', 'remove', 'join'] as const) {
      if (random.chance(0.2)) actions.push({ atMs: later(4000, 18_000), room, who, do: what });
    }
  }
  // Every other participant has the same region.
  for (const who of isOneServerLeft ? [1, 3] : []) {
    actions.push({ atMs: random.between(22_500, 23_500), room, who, do: 'leave' });
  }
  if (random.chance(0.5)) actions.push({ atMs: random.between(12_000, 22_000), room, do: 'end' });
  return actions;
}

/** A recorded room has a key, because its creation is refused while no recorder runs. */
function varied(action: RoomAction, returns: Random, recordings: Random): RoomAction {
  if (action.do === 'create') return { ...action, isRecorded: action.isKeyed && recordings.chance(0.4) };
  return action.do === 'join' ? { ...action, staysAway: returns.chance(0.2) } : action;
}

function recordingsOf({ do: what, room, atMs }: RoomAction, random: Random): RoomAction[] {
  const actions: RoomAction[] = [];
  if (what !== 'create') return actions;
  if (random.chance(0.4)) actions.push({ atMs: atMs + random.between(100, 9000), room, do: 'record' });
  if (random.chance(0.3)) actions.push({ atMs: atMs + random.between(2000, 14_000), room, do: 'stop recordings' });
  return actions;
}

/** Some participants are moved to another room, which may not exist, once or twice. */
function movesAfter({ atMs, room, ...action }: RoomAction, random: Random): RoomAction[] {
  if (action.do !== 'join' || !random.chance(0.4)) return [];
  const { who } = action;
  const first = { atMs: atMs + random.between(50, 8000), room, who, do: 'move' as const, to: random.below(4) };
  return random.chance(0.3) ? [first, { ...first, atMs: first.atMs + random.between(0, 500) }] : [first];
}

/** Removed participants, and participants of an ended room, try to come back with the token that they have. */
function returnsAfter(action: RoomAction, random: Random): RoomAction[] {
  const { room, atMs } = action;
  const laterMs = atMs + random.between(30, 4000);
  if (action.do === 'remove' && random.chance(0.5)) return [{ atMs: laterMs, room, who: action.who, do: 'join' }];
  if (action.do === 'end' && random.chance(0.3)) return [{ atMs: laterMs, room, who: 0, do: 'join' }];
  return [];
}
