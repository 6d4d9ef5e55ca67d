import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Failure } from '../bootstrap.js';
import { FAULT_KINDS, type FaultKind } from './fault-kinds.js';

/** Seeds are below this number. */
const SEED_MAX = 2 ** 31;

export interface Target {
  baseUrl: string;
  /** Of the signaling gateways, if they are not behind the same address. */
  signalingUrl: string | undefined;
  keys: string[];
  receiverUrl: string | undefined;
}

export interface Options {
  /** The history of an earlier run to check, in place of a run. */
  check: string | null;
  minutes: number;
  seed: number;
  out: string;
  /** The kinds of faults that the nemesis chooses from. */
  faults: readonly FaultKind[];
  /** The seeded bugs that the apps are built with, with commas between them. */
  bug: string | undefined;
  /** A deployment in place of an own fleet. */
  target: Target | null;
}

/** @throws Failure with one line about a wrong value. */
export function readOptions(args: string[]): Options {
  const values = parsed(args);
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes <= 24 * 60))
    throw new Failure(`--minutes must be above 0 and at most 1440, not ${values.minutes}`);
  const seed = values.seed === undefined ? Date.now() % SEED_MAX : Number(values.seed || NaN);
  if (!Number.isInteger(seed) || seed < 0 || seed >= SEED_MAX)
    throw new Failure(`--seed must be a whole number below 2^31, not ${values.seed}`);
  const check = values.check === undefined ? null : resolve(values.check);
  const faults = faultsOf(values.faults);
  const target = targetOf(values);
  const out = resolve(values.out ?? join(tmpdir(), `callplane-history-${randomUUID()}`));
  return { check, minutes, seed, out, faults, bug: values.bug, target };
}

type Values = ReturnType<typeof parsed>;

/** @returns null if the run has a fleet of its own. */
function targetOf(values: Values): Target | null {
  const { 'base-url': baseUrl, 'signaling-url': signalingUrl, 'receiver-url': receiverUrl, key: keys } = values;
  if (baseUrl === undefined) {
    const name = (['key', 'signaling-url', 'receiver-url'] as const).find((each) => values[each] !== undefined);
    if (name !== undefined) throw new Failure(`--${name} needs --base-url`);
    return null;
  }
  const own = (['faults', 'bug'] as const).find((each) => values[each] !== undefined);
  if (own !== undefined) throw new Failure(`--${own} is for a fleet on this machine, and not for a --base-url`);
  if (keys === undefined) throw new Failure('--base-url needs --key, once for each tenant');
  urlOf('base-url', baseUrl, ['http:', 'https:']);
  if (signalingUrl !== undefined) urlOf('signaling-url', signalingUrl, ['ws:', 'wss:']);
  if (receiverUrl !== undefined) urlOf('receiver-url', receiverUrl, ['http:']);
  return { baseUrl, signalingUrl, keys, receiverUrl };
}

function urlOf(name: string, value: string, protocols: readonly string[]): void {
  if (!URL.canParse(value) || !protocols.includes(new URL(value).protocol))
    throw new Failure(`--${name} must be a URL that begins with ${protocols.join('// or ')}//, not ${value}`);
}

function parsed(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        check: { type: 'string' },
        minutes: { type: 'string', default: '10' },
        seed: { type: 'string' },
        out: { type: 'string' },
        faults: { type: 'string' },
        bug: { type: 'string' },
        'base-url': { type: 'string' },
        'signaling-url': { type: 'string' },
        key: { type: 'string', multiple: true },
        'receiver-url': { type: 'string' },
      },
    }).values;
  } catch (error) {
    throw new Failure((error as Error).message);
  }
}

function faultsOf(list: string | undefined): readonly FaultKind[] {
  if (list === undefined) return FAULT_KINDS;
  return list.split(',').map((name) => {
    const kind = FAULT_KINDS.find((each) => each === name);
    if (kind === undefined) throw new Failure(`--faults has no kind "${name}". There are ${FAULT_KINDS.join(', ')}`);
    return kind;
  });
}
