/**
 * `npm run torture -- [--minutes 10] [--seed N] [--faults a,b] [--out FOLDER]`: runs the whole fleet on this machine
 * under mixed load, with faults chosen from the seed, writes histories of everything that clients and receivers saw, and
 * checks them. `--check FOLDER` checks the histories of an earlier run once more. `--base-url URL --key KEY` runs the load
 * against a deployment, without faults; `--key` once for each tenant, with `--signaling-url URL` if the gateways have an
 * address of their own, and `--receiver-url URL` of this machine for webhooks. `--bug NAME` builds the apps with a seeded
 * bug (tests/simulation/bugs.mjs), which the checker should find; `--bug A,B` with several that break different
 * guarantees.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ensurePrograms, explain, Failure, progress } from '../bootstrap.js';
import { checkHistory } from './check/check-history.js';
import { describeFinding } from './check/finding.js';
import { HISTORY_FILES } from './history.js';
import { readOptions } from './options.js';
import { exitOnSignals } from './processes.js';
import { torture } from './torture.js';

const PROGRAMS = ['redis-server', 'nginx', 'turnserver', 'janus'];

const say = (line: string): void => console.log(line);

export async function main(args: string[]): Promise<void> {
  if (args[0] === '--check' && args[1] !== undefined) {
    process.exitCode = (await check(resolve(args[1]))) ? 0 : 1;
    return;
  }
  const options = readOptions(args);
  exitOnSignals();
  if (existsSync(join(options.out, HISTORY_FILES.run)))
    throw new Failure(`${options.out} holds the history of another run. Name another folder with --out`);
  say(`seed ${options.seed}, ${options.minutes} minutes, histories in ${options.out}`);
  if (options.target === null) {
    const missing = await ensurePrograms(PROGRAMS, { say, step: progress(say) });
    if (missing.length > 0) throw new Failure(`The fleet needs ${missing.join(' and ')}`);
  }
  let isHeld = false;
  try {
    const problems = await torture(options, say);
    for (const problem of problems) say(`BROKEN  ${problem}`);
    isHeld = (await check(options.out)) && problems.length === 0;
  } catch (error) {
    explain(error);
  }
  // The library of WebRTC keeps threads, and crashes in its finalizers, which do not run after this call.
  process.exit(isHeld ? 0 : 1);
}

/** Prints what the history of a run says about each guarantee. */
async function check(folder: string): Promise<boolean> {
  const findings = await checkHistory(folder);
  for (const finding of findings) say(describeFinding(finding));
  return findings.every(({ verdict }) => verdict !== 'broken');
}
