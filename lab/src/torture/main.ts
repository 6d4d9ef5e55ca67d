/** `npm run torture`: runs a fleet under load and faults, or checks the history of an earlier run. `--help` explains the options. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ensurePrograms, explain, Failure, installCommand, progress } from '../bootstrap.js';
import { checkHistory } from './check/check-history.js';
import { describeFinding, summaryOf } from './check/finding.js';
import { HISTORY_FILES } from './history.js';
import { faketimeLibrary } from '../fleet/apps.js';
import { readOptions, USAGE, type Options } from './options.js';
import { exitOnSignals } from '../fleet/processes.js';
import { torture } from './torture.js';

const PROGRAMS = ['redis-server', 'nginx', 'turnserver', 'janus', 'ffmpeg'];

const say = (line: string): void => console.log(line);

export async function main(args: string[]): Promise<void> {
  let isHeld: boolean;
  try {
    const options = readOptions(args);
    if (options === null) {
      say(USAGE);
      return;
    }
    isHeld = options.check === null ? await run(options) : await check(options.check);
  } catch (error) {
    explain(error);
    process.exit(2);
  }
  // The library of WebRTC keeps threads, and crashes in its finalizers, which do not run after this call.
  process.exit(isHeld ? 0 : 1);
}

/** @returns whether no guarantee is broken. */
async function run(options: Options): Promise<boolean> {
  exitOnSignals();
  if (existsSync(join(options.out, HISTORY_FILES.run)))
    throw new Failure(`${options.out} holds the history of another run. Name another folder with --out`);
  if (options.target === null) await installPrograms();
  const problems = await torture(options, say);
  for (const problem of problems) say(`BROKEN  ${problem}`);
  return check(options.out, problems.length);
}

/** Clocks jump with libfaketime alone. Without it, the run leaves that out. */
async function installPrograms(): Promise<void> {
  const optional = faketimeLibrary() === null ? ['faketime'] : [];
  const missing = await ensurePrograms([...PROGRAMS, ...optional], { say, step: progress(say) });
  const needed = missing.filter((program) => PROGRAMS.includes(program));
  if (needed.length > 0) throw new Failure(`The fleet needs ${needed.join(' and ')}: ${installCommand(needed)}`);
}

/**
 * Prints the findings about each guarantee in the history of a run.
 * @param problems number of the problems inside of the fleet.
 */
async function check(folder: string, problems = 0): Promise<boolean> {
  const findings = await checkHistory(folder).catch((error: unknown) => {
    throw new Failure((error as Error).message);
  });
  for (const finding of findings) say(describeFinding(finding));
  say(`${summaryOf(findings)}${problems === 0 ? '' : `, inside of the fleet: ${problems} BROKEN`}`);
  return problems === 0 && findings.every(({ verdict }) => verdict !== 'broken');
}
