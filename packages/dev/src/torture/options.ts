import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Failure } from '../bootstrap.js';

/** Seeds are below this number. */
const SEED_MAX = 2 ** 31;

export interface Options {
  minutes: number;
  seed: number;
  out: string;
  /** A deployment in place of an own fleet. */
  target: { baseUrl: string; keys: string[]; receiverUrl: string | undefined } | null;
}

/** @throws Failure with one line about a wrong value. */
export function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string' },
      out: { type: 'string' },
      'base-url': { type: 'string' },
      key: { type: 'string', multiple: true },
      'receiver-url': { type: 'string' },
    },
  });
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes <= 24 * 60))
    throw new Failure(`--minutes must be above 0 and at most 1440, not ${values.minutes}`);
  const seed = values.seed === undefined ? Date.now() % SEED_MAX : Number(values.seed);
  if (!Number.isInteger(seed) || seed < 0 || seed >= SEED_MAX)
    throw new Failure(`--seed must be a whole number below 2^31, not ${values.seed}`);
  const out = resolve(values.out ?? join(mkdtempSync(join(tmpdir(), 'callplane-history-')), 'run'));
  const baseUrl = values['base-url'];
  if (baseUrl === undefined) return { minutes, seed, out, target: null };
  if (values.key === undefined) throw new Failure('--base-url needs --key, once for each tenant');
  return { minutes, seed, out, target: { baseUrl, keys: values.key, receiverUrl: values['receiver-url'] } };
}
