import { mkdtempSync } from 'node:fs';
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
  const seed = values.seed === undefined ? Date.now() % SEED_MAX : Number(values.seed);
  if (!Number.isInteger(seed) || seed < 0 || seed >= SEED_MAX)
    throw new Failure(`--seed must be a whole number below 2^31, not ${values.seed}`);
  const faults = faultsOf(values.faults);
  const out = resolve(values.out ?? join(mkdtempSync(join(tmpdir(), 'callplane-history-')), 'run'));
  const own = { minutes, seed, out, faults, bug: values.bug };
  const baseUrl = values['base-url'];
  if (baseUrl === undefined) return { ...own, target: null };
  if (!URL.canParse(baseUrl)) throw new Failure(`--base-url must be a URL, not ${baseUrl}`);
  if (values.key === undefined) throw new Failure('--base-url needs --key, once for each tenant');
  const { 'signaling-url': signalingUrl, 'receiver-url': receiverUrl } = values;
  return { ...own, target: { baseUrl, signalingUrl, keys: values.key, receiverUrl } };
}

function parsed(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
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
