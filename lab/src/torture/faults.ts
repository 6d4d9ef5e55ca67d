import { writeFileSync } from 'node:fs';
import type { Cable } from '../fleet/cable.js';
import type { Fleet } from '../fleet/fleet.js';
import type { NemesisAction } from './history.js';
import type { Machine } from '../fleet/machine.js';
import type { Random } from '../random.js';

/** The kinds of faults, as `--faults` names them, and how often each is chosen beside the others. */
export const WEIGHTS = {
  'kill-app': 6,
  'freeze-app': 5,
  'restart-app': 2,
  cut: 3,
  'kill-redis': 2,
  'freeze-redis': 2,
  'demote-redis': 1,
  flush: 1,
  'kill-nginx': 1,
  'kill-postgres': 1,
  'freeze-postgres': 1,
  promote: 2,
  fill: 1,
  clock: 2,
  'kill-media': 2,
  'freeze-media': 2,
};

export type FaultKind = keyof typeof WEIGHTS;

export const FAULT_KINDS = Object.keys(WEIGHTS) as FaultKind[];

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

/** Chooses the target and the length of a fault of this kind. */
export async function newFault(fleet: Fleet, kind: FaultKind, random: Random): Promise<Fault> {
  const { postgres, redis, nginx, media, instances } = fleet;
  const mediaMachines = [...media.januses, media.coturn];
  const nodes = postgres.nodes.map(({ machine }) => machine);
  const app = (): Machine => random.pick(instances).machine;
  switch (kind) {
    case 'kill-app':
      return onMachine('kill', app(), random);
    case 'freeze-app':
      return onMachine('freeze', app(), random);
    case 'restart-app':
      return onMachine('restart', app(), random);
    case 'kill-redis':
      return onRedis('kill', fleet, random);
    case 'freeze-redis':
      return onRedis('freeze', fleet, random);
    case 'kill-nginx':
      return onMachine('kill', nginx, random);
    case 'kill-media':
      return onMachine('kill', random.pick(mediaMachines), random);
    case 'freeze-media':
      return onMachine('freeze', random.pick(mediaMachines), random);
    case 'kill-postgres':
      return onPostgres('kill', fleet, random.pick(nodes), random);
    case 'freeze-postgres':
      return onPostgres('freeze', fleet, random.pick(nodes), random);
    case 'flush':
      return { action: 'flush', target: 'redis', lock: 'redis', ms: 0, begin: () => redis.flush() };
    case 'demote-redis':
      return { action: 'demote', target: 'redis', lock: 'redis', ms: 0, begin: () => redis.demote() };
    case 'promote':
      return promotion(fleet, random);
    case 'fill':
      return fullDisk(fleet, random);
    case 'cut':
      return cutCable(fleet, random);
    case 'clock':
      return jump(fleet, random);
  }
}

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

function onPostgres(action: 'kill' | 'freeze', { postgres }: Fleet, machine: Machine, random: Random): Fault {
  const fault = onMachine(action, machine, random);
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
