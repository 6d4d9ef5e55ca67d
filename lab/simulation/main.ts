/**
 * The bundled simulation: `node simulation.mjs --url <database> …`. lab/src/simulate/main.ts makes the bundle and
 * the database; its help explains the options.
 */
import { parseArgs } from 'node:util';
import { real, replaceGlobals } from './globals.js';
import { planOf } from './plan.js';
import { Postgres } from './ports/postgres.js';
import { Coverage, failureReport, shrink } from './report.js';
import { currentWorld, preparePrisma, simulate, type Outcome } from './run.js';

/** A fleet that does nothing breaks no guarantee. These messages must be in the logs of a number of runs. */
const RUNS_THAT_DO_ALL = 20;
const DONE = [
  'operation attempt room.end completed',
  'delivery attempt pending',
  'delivery lease expired pending',
  'join joined',
];

const { values: options } = parseArgs({
  options: {
    url: { type: 'string', default: '' },
    seed: { type: 'string' },
    seeds: { type: 'string' },
    minutes: { type: 'string' },
    /** The number of seeds that run twice, and must give the same hash. */
    twice: { type: 'string', default: '0' },
    trace: { type: 'boolean', default: false },
    /** Ends with the first broken guarantee, and does not shrink its run. */
    brief: { type: 'boolean', default: false },
  },
});

replaceGlobals(currentWorld);
preparePrisma(options.url);
const postgres = await Postgres.open(options.url);
const run = (plan: Outcome['plan']): Promise<Outcome> => simulate(postgres, options.url, plan);
const coverage = new Coverage();
const began = real.now();
const untilMs = options.minutes === undefined ? 0 : began + Number(options.minutes) * 60_000;
let isBroken = false;
for (const seed of seedsOf(options.seed ?? options.seeds ?? '1-20')) {
  const isOk = await runSeed(seed);
  if (!isOk && !isBroken) await printProcessorTime();
  isBroken ||= !isOk;
  if (isBroken && options.brief) break;
}
if (isBroken) process.exitCode = 1;
else await printProcessorTime();
console.log(coverage.summary());
if (coverage.runs === 0) {
  console.error('No seed was run: name one with --seed N, several with --seeds A-B, or a time with --minutes M.');
  process.exitCode = 1;
}
const missing = DONE.filter((line) => !coverage.logged.has(line));
if (coverage.runs >= RUNS_THAT_DO_ALL && (missing.length > 0 || coverage.crashes === 0)) {
  console.error(`No run has done this: ${[...missing, ...(coverage.crashes === 0 ? ['a crash'] : [])].join(', ')}`);
  process.exitCode = 1;
}
await postgres.close();

/** Of this process, and of its sessions of PostgreSQL, until a guarantee breaks or until the end. */
async function printProcessorTime(): Promise<void> {
  const { user, system } = process.cpuUsage();
  console.log(`Processor time: ${((user + system) / 1e6 + (await postgres.processorSeconds())).toFixed(1)} s`);
}

/** Seeds like `4,11-14`; with --minutes, from the first one on until the time is over. */
function* seedsOf(text: string): Generator<number> {
  for (const part of text.split(',')) {
    const [first = 1, last = first] = part.split('-').map(Number);
    for (let seed = first; untilMs > 0 ? real.now() < untilMs : seed <= last; seed += 1) yield seed;
  }
}

async function runSeed(seed: number): Promise<boolean> {
  const beganMs = real.now();
  const outcome = await run(planOf(seed));
  coverage.add(outcome);
  const { violations, hash, steps, statements, simulatedMs, crashes } = outcome;
  const what = `${steps} steps, ${statements} statements, ${Math.round(simulatedMs / 1000)} s simulated, ${crashes} crashes`;
  console.log(`seed ${seed}: ${hash}, ${what}, ${Math.round(real.now() - beganMs)} ms`);
  if (options.trace) console.log(outcome.trace.join('\n'));
  if (coverage.runs <= Number(options.twice)) {
    const again = await run(planOf(seed));
    if (again.hash !== hash) {
      const at = outcome.trace.findIndex((line, index) => line !== again.trace[index]);
      console.log(`BROKEN determinism: ${hash} and ${again.hash}`);
      console.log(outcome.trace.slice(Math.max(0, at - 3), at + 2).join('\n'));
      console.log(`instead of\n${again.trace.slice(Math.max(0, at - 3), at + 2).join('\n')}`);
      return false;
    }
  }
  if (violations.length === 0) return true;
  if (options.brief) console.log(`BROKEN ${violations[0]?.name ?? ''}: ${violations[0]?.detail ?? ''}`);
  else console.log(failureReport(await shrink(outcome, run)));
  return false;
}
