import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Failure, parsed } from '../bootstrap.js';
import { FAULT_KINDS, type FaultKind } from './faults.js';

export const USAGE = `npm run torture -- …: a whole fleet on this machine under load and faults, whose history is checked
  --minutes M, --seconds S  how long the faults last; default: 10 minutes
  --seed N                  decides the faults, the load and the answers of receivers
  --faults A,B              kinds of faults to choose from: ${FAULT_KINDS.join(', ')}
  --out FOLDER              the history; default: a new folder for temporary files
  --check FOLDER            checks the history of an earlier run, in place of a run
  --bug A,B                 builds the apps with seeded bugs (lab/simulation/bugs.mjs), which the checker should find
  --base-url URL            runs the load against a deployment, without faults; needs
  --key KEY                 an API key, once for each tenant
  --signaling-url URL       of its gateways, if they have an address of their own
  --receiver-url URL        of this machine, as the deployment reaches it: for webhooks
Exits with 0 if no guarantee is broken, 1 if one is, and 2 if the run could not take place or did not come to its end.`;

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
  faults: readonly FaultKind[];
  /** The seeded bugs that the apps are built with. */
  bugs: readonly string[];
  target: Target | null;
}

/**
 * @returns null if they ask for help.
 * @throws Failure with one line about a wrong value.
 */
export function readOptions(args: string[]): Options | null {
  const values = valuesOf(args);
  if (values.help === true) return null;
  const minutes = minutesOf(values);
  const seed = values.seed === undefined ? Date.now() % SEED_MAX : Number(values.seed || NaN);
  if (!Number.isInteger(seed) || seed < 0 || seed >= SEED_MAX)
    throw new Failure(`--seed must be a whole number below 2^31, not ${values.seed}`);
  const check = values.check === undefined ? null : resolve(values.check);
  const faults = faultsOf(values.faults);
  const target = targetOf(values);
  const out = resolve(values.out ?? join(tmpdir(), `callplane-history-${randomUUID()}`));
  return { check, minutes, seed, out, faults, bugs: values.bug?.split(',') ?? [], target };
}

type Values = ReturnType<typeof valuesOf>;

function valuesOf(args: string[]) {
  const text = { type: 'string' } as const;
  const flags = { help: { type: 'boolean', short: 'h' }, key: { ...text, multiple: true } } as const;
  const ofRun = { minutes: text, seconds: text, seed: text, out: text, faults: text, bug: text, check: text };
  const ofTarget = { 'base-url': text, 'signaling-url': text, 'receiver-url': text };
  return parsed({ args, options: { ...flags, ...ofRun, ...ofTarget } }).values;
}

function minutesOf({ minutes, seconds }: Values): number {
  if (minutes !== undefined && seconds !== undefined) throw new Failure('--minutes and --seconds exclude each other');
  const [name, value, perMinute] = seconds === undefined ? ['minutes', minutes ?? '10', 1] : ['seconds', seconds, 60];
  const given = Number(value) / perMinute;
  if (!(given > 0 && given <= 24 * 60))
    throw new Failure(`--${name} must be above 0 and at most ${1440 * perMinute}, not ${value}`);
  return given;
}

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

function faultsOf(list: string | undefined): readonly FaultKind[] {
  if (list === undefined) return FAULT_KINDS;
  return list.split(',').map((name) => {
    const kind = FAULT_KINDS.find((each) => each === name);
    if (kind === undefined) throw new Failure(`--faults has no kind "${name}". There are ${FAULT_KINDS.join(', ')}`);
    return kind;
  });
}
