import { writeFileSync } from 'node:fs';
import type { Cable } from '../fleet/cable.js';
import type { Fleet } from '../fleet/fleet.js';
import type { NemesisAction } from './history.js';
import type { Machine } from '../fleet/machine.js';
import type { Random } from '../random.js';

/** Duration of a fault, in milliseconds. */
const FAULT_MS = { min: 500, max: 8000 };
/** Longest jump of a clock, in seconds. */
const JUMP_MAX = 600;

/** One fault, from its begin to its end. */
export interface Fault {
  action: NemesisAction;
  target: string;
  /** Faults with the same lock never happen at once; the second one is left out. */
  lock: string;
  ms: number;
  begin: () => unknown;
  end?: () => unknown;
}

type Choose = (fleet: Fleet, random: Random) => Fault | Promise<Fault>;

/** @param weight how often the kind is chosen beside the others. */
const kind = (weight: number, choose: Choose): { weight: number; choose: Choose } => ({ weight, choose });

const appOf = ({ instances }: Fleet, random: Random): Machine => random.pick(instances).machine;
const mediaOf = ({ media }: Fleet, random: Random): Machine => random.pick([...media.januses, media.coturn]);

/** The kinds of faults, as `--faults` names them. Each chooses its target and its length. */
export const FAULTS = {
  'kill-app': kind(6, (fleet, random) => onMachine('kill', appOf(fleet, random), random)),
  'freeze-app': kind(5, (fleet, random) => onMachine('freeze', appOf(fleet, random), random)),
  'restart-app': kind(2, (fleet, random) => onMachine('restart', appOf(fleet, random), random)),
  cut: kind(3, cutCable),
  'kill-redis': kind(2, (fleet, random) => onRedis('kill', fleet, random)),
  'freeze-redis': kind(2, (fleet, random) => onRedis('freeze', fleet, random)),
  'demote-redis': kind(1, ({ redis }) => atOnce('demote', 'redis', () => redis.demote())),
  flush: kind(1, ({ redis }) => atOnce('flush', 'redis', () => redis.flush())),
  'refuse-channels': kind(1, (fleet, random) => refusal('channels', fleet, random)),
  'refuse-scripts': kind(1, (fleet, random) => refusal('scripts', fleet, random)),
  'kill-nginx': kind(1, ({ nginx }, random) => onMachine('kill', nginx, random)),
  'kill-postgres': kind(1, (fleet, random) => onPostgres('kill', fleet, random)),
  'freeze-postgres': kind(1, (fleet, random) => onPostgres('freeze', fleet, random)),
  promote: kind(2, promotion),
  fill: kind(1, fullDisk),
  clock: kind(2, jump),
  'kill-media': kind(2, (fleet, random) => onMachine('kill', mediaOf(fleet, random), random)),
  'lose-store': kind(2, lostStore),
  'freeze-media': kind(2, (fleet, random) => onMachine('freeze', mediaOf(fleet, random), random)),
};

export type FaultKind = keyof typeof FAULTS;

export const FAULT_KINDS = Object.keys(FAULTS) as FaultKind[];

const atOnce = (action: NemesisAction, target: string, begin: () => unknown): Fault => ({
  action,
  target,
  lock: target,
  ms: 0,
  begin,
});

function onMachine(action: 'kill' | 'freeze' | 'restart', machine: Machine, random: Random): Fault {
  const ms = random.between(FAULT_MS.min, FAULT_MS.max);
  const whole = { action, target: machine.name, lock: machine.name, ms };
  if (action === 'freeze') return { ...whole, begin: () => machine.freeze(), end: () => machine.thaw() };
  return { ...whole, begin: () => (action === 'kill' ? machine.kill() : machine.stop()), end: () => machine.start() };
}

/** The master half of the time, or any server or Sentinel. */
async function onRedis(action: 'kill' | 'freeze', { redis }: Fleet, random: Random): Promise<Fault> {
  const isMaster = random.chance(0.5);
  const any = random.pick([...redis.servers, ...redis.sentinels]);
  const master = isMaster ? await redis.master() : null;
  const fault = onMachine(action, master ?? any, random);
  return master === null ? fault : { ...fault, target: `${master.name}, the master` };
}

/** Rules of every user of Redis, and their opposites. */
const REFUSALS = { channels: ['resetchannels', 'allchannels'], scripts: ['-eval', '+eval'] } as const;
/** Longer than the probe of a process needs to notice, in milliseconds. */
const REFUSED_MS = { min: 2000, max: 20_000 };

function refusal(what: keyof typeof REFUSALS, { redis }: Fleet, random: Random): Fault {
  const [refused, granted] = REFUSALS[what];
  return {
    action: 'refuse',
    target: `redis ${what}`,
    lock: 'redis users',
    ms: random.between(REFUSED_MS.min, REFUSED_MS.max),
    begin: () => redis.setUsers(refused),
    end: () => redis.setUsers(granted),
  };
}

function onPostgres(action: 'kill' | 'freeze', { postgres }: Fleet, random: Random): Fault {
  const fault = onMachine(action, random.pick(postgres.nodes).machine, random);
  return {
    ...fault,
    lock: 'postgres',
    end: async () => {
      await fault.end?.();
      await postgres.inStep();
    },
  };
}

function promotion({ postgres }: Fleet, random: Random): Fault {
  const isDead = random.chance(0.5);
  return {
    action: 'promote',
    target: `primary ${isDead ? 'killed' : 'frozen'}`,
    lock: 'postgres',
    ms: random.between(0, 3000),
    begin: () => (isDead ? postgres.primary.machine.kill() : postgres.primary.machine.freeze()),
    end: () => postgres.promote(),
  };
}

function fullDisk({ postgres }: Fleet, random: Random): Fault {
  return {
    action: 'fill',
    target: postgres.primary.machine.name,
    lock: 'postgres',
    ms: random.between(2000, 6000),
    begin: () => postgres.fill(),
    end: async () => {
      postgres.empty();
      // A server without room for its log ends; its supervisor tries again until it starts.
      await postgres.primary.machine.start();
      await postgres.inStep();
    },
  };
}

function lostStore({ store }: Fleet, random: Random): Fault {
  return {
    action: 'lose',
    target: 'store',
    lock: 'store',
    ms: random.between(FAULT_MS.min, 2 * FAULT_MS.max),
    begin: () => store.lose(),
    end: () => store.find(),
  };
}

function cutCable({ instances }: Fleet, random: Random): Fault {
  const { name, cables } = random.pick(linesOf(instances));
  return {
    action: 'cut',
    target: name,
    lock: name,
    ms: random.between(FAULT_MS.min, 2 * FAULT_MS.max),
    begin: () => cables.forEach((cable) => cable.cut()),
    end: () => cables.forEach((cable) => cable.heal()),
  };
}

/** The connections of single apps. */
function linesOf(instances: Fleet['instances']): { name: string; cables: readonly Cable[] }[] {
  return instances.flatMap(({ machine, database, front, media }) => [
    { name: `${machine.name} to postgres`, cables: database },
    ...(front === null ? [] : [{ name: `nginx to ${machine.name}`, cables: [front] }]),
    ...media.map((cable, n) => ({ name: `${machine.name} to janus ${n + 1}`, cables: [cable] })),
  ]);
}

function jump({ instances }: Fleet, random: Random): Fault {
  const { machine, clockFile } = random.pick(instances.filter((each) => each.clockFile !== null));
  const seconds = random.between(-JUMP_MAX, JUMP_MAX);
  const set = (offset: number): void => writeFileSync(clockFile ?? '', `${offset < 0 ? '' : '+'}${offset}\n`);
  return {
    action: 'clock',
    target: `${machine.name} by ${seconds} s`,
    lock: `clock ${machine.name}`,
    ms: random.between(FAULT_MS.min, FAULT_MS.max),
    begin: () => set(seconds),
    end: () => set(0),
  };
}
