/** `npm run simulate`: runs lab/simulation in processes of their own. `--help` explains the options. */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { BUGS } from '../../simulation/bugs.mjs';
import { bundle } from '../../simulation/bundle.mjs';
import { Failure, parsed, root } from '../bootstrap.js';

const USAGE = `npm run simulate -- …, after the build:
  --seed N         runs one seed
  --seeds A-B,C    runs several; default: 1-20
  --minutes M      runs seeds for this time, and prints their coverage
  --twice N        runs the first N seeds twice in one process, and shows where the runs differ
  --trace          prints every step
  --brief          ends with the first broken guarantee, and does not shorten its run
  --bug NAME       runs these seeds with a seeded bug, and shortens its failure
  --bugs all|a,b   applies each seeded bug (bugs.mjs), or these, tells which seed finds it, and prints the
                   processor time until then; --jobs N: N at once
Uses the PostgreSQL of TEST_POSTGRES_URL, or starts its own.`;
const SEEDS_FOR_BUGS = '1-60';

type Bug = (typeof BUGS)[number];

/** Of the bundles of this run. */
let folder = '';
const children = new Set<ChildProcess>();
let isStopped = false;

export async function main(args: string[]): Promise<void> {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const own = { help: { ...flag, short: 'h' }, bug: text, bugs: text, jobs: { ...text, default: '2' } };
  // The bundled simulation (main.ts) reads these.
  const passedOn = { seed: text, seeds: text, minutes: text, twice: text, trace: flag, brief: flag };
  const { values } = parsed({ args, options: { ...own, ...passedOn } });
  if (values.help === true) {
    console.log(USAGE);
    return;
  }
  // Before anything starts: a wrong name ends the command.
  const bugs = values.bugs === 'all' ? BUGS : named(values.bugs ?? values.bug);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      isStopped = true;
      for (const child of children) child.kill('SIGTERM');
    });
  }
  folder = mkdtempSync(join(tmpdir(), 'callplane-simulation-'));
  let stop = (): Promise<void> => Promise.resolve();
  try {
    stop = await startPostgres();
    process.exitCode =
      values.bugs === undefined
        ? await runSeeds(args, bugs[0])
        : await findBugs(bugs, Number(values.jobs), values.seeds ?? SEEDS_FOR_BUGS);
  } finally {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runSeeds(args: readonly string[], bug: Bug | undefined): Promise<number> {
  const file = await bundleTo('product', bug?.patches);
  const rest = args.filter((arg, at) => !/^--bug(=|$)/.test(arg) && args[at - 1] !== '--bug');
  const { code } = await simulation(file, rest, 'inherit');
  if (bug !== undefined) console.log(`With the seeded bug ${bug.name}: reproduce it with --bug ${bug.name}, too.`);
  return code;
}

/** The seeded bugs of these names, which commas separate. */
function named(names: string | undefined): Bug[] {
  return (names?.split(',') ?? []).map((name) => {
    const bug = BUGS.find((each) => each.name === name);
    if (bug === undefined) throw new Failure(`There is no seeded bug ${name}. lab/simulation/bugs.mjs names all.`);
    return bug;
  });
}

/** @returns 0 if every bug is found. */
async function findBugs(bugs: readonly Bug[], jobs: number, seeds: string): Promise<number> {
  const waiting = bugs.values();
  let missed = 0;
  const work = async (): Promise<void> => {
    for (const bug of waiting) {
      if (isStopped) return;
      if (!(await findBug(bug, seeds))) missed += 1;
    }
  };
  // A simulation waits for PostgreSQL for most of its time.
  await Promise.all(Array.from({ length: jobs }, work));
  if (isStopped) return 130;
  console.log(`${missed} seeded bugs were not found.`);
  return missed === 0 ? 0 : 1;
}

/** @returns whether the bug was found. */
async function findBug({ name, what, patches }: Bug, seeds: string): Promise<boolean> {
  const file = await bundleTo(name, patches);
  const { code, output } = await simulation(file, ['--brief', '--seeds', seeds], 'pipe');
  rmSync(join(folder, name), { recursive: true, force: true });
  const seconds = /^Processor time: ([\d.]+) s$/m.exec(output)?.[1] ?? '?';
  const broken = /^BROKEN ([\w-]+): (.*)$/m.exec(output);
  const run = broken === null ? output : output.slice(0, broken.index);
  const seed = [...run.matchAll(/^seed (\d+):/gm)].at(-1)?.[1] ?? '?';
  if (isStopped) return true;
  const found = code === 0 ? 'nothing' : (broken?.[1] ?? `a crash: ${output.slice(-600)}`);
  console.log(`| ${name} | ${what} | ${found} | ${code === 0 ? `none of ${seeds}` : seed} | ${seconds} s |`);
  // A crash of the simulation itself finds nothing.
  return broken !== null;
}

async function bundleTo(name: string, patches?: Bug['patches']): Promise<string> {
  const out = join(folder, name);
  await bundle(out, patches);
  return join(out, 'simulation.mjs');
}

/** Runs a bundle on a database of its own. */
async function simulation(file: string, args: readonly string[], stdio: 'inherit' | 'pipe') {
  if (isStopped) return { code: 130, output: '' };
  const adminUrl = String(process.env['TEST_POSTGRES_URL']);
  const name = `simulation_${randomBytes(6).toString('hex')}`;
  await asAdmin(adminUrl, `CREATE DATABASE ${name} TEMPLATE callplane_template`);
  const url = Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href;
  const child = spawn(process.execPath, ['--enable-source-maps', file, '--url', url, ...args], {
    stdio: ['ignore', stdio, stdio],
  });
  children.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number>((resolve) => child.once('close', (exit) => resolve(exit ?? 1)));
  children.delete(child);
  await asAdmin(adminUrl, `DROP DATABASE ${name} WITH (FORCE)`);
  return { code, output };
}

async function asAdmin(connectionString: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Starts a PostgreSQL with the migrated template, unless Jest has. */
async function startPostgres(): Promise<() => Promise<void>> {
  if (process.env['TEST_POSTGRES_URL'] !== undefined) return () => Promise.resolve();
  const file = join(root, 'packages', 'testing', 'dist', 'shared-postgres.js');
  const { startSharedPostgres } = (await import(file)) as { startSharedPostgres(): Promise<() => Promise<void>> };
  return startSharedPostgres();
}
