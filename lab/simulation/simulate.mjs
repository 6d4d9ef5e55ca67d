import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { bundle } from './bundle.mjs';
import { BUGS } from './bugs.mjs';

const USAGE = `npm run simulate -- …, after the build:
  --seed N         runs one seed
  --seeds A-B,C    runs several; default: 1-20
  --minutes M      runs seeds for this time, and prints what they have covered
  --twice N        runs the first N seeds twice in one process, and shows where the runs differ
  --trace          prints every step
  --coverage       prints kinds of log lines, statements, and the points of crashes
  --brief          ends with the first broken guarantee, and does not shorten its run
  --bug NAME       runs these seeds with a seeded bug, and shortens what it breaks
  --bugs all|a,b   applies each seeded bug (bugs.mjs), or these, tells which seed finds it, and prints the
                   processor time until then; --jobs N: N at once
Uses the PostgreSQL of TEST_POSTGRES_URL, or starts its own.`;

/** Exits if an option is not known. */
function parseOptions() {
  try {
    return parseArgs({
      options: {
        help: { type: 'boolean', short: 'h' },
        bug: { type: 'string' },
        bugs: { type: 'string' },
        jobs: { type: 'string', default: '2' },
        // The bundled simulation (main.ts) reads these.
        seed: { type: 'string' },
        seeds: { type: 'string' },
        minutes: { type: 'string' },
        twice: { type: 'string' },
        trace: { type: 'boolean' },
        coverage: { type: 'boolean' },
        brief: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    process.exit(1);
  }
}

const options = parseOptions();
if (options.help === true) {
  console.log(USAGE);
  process.exit();
}
const SEEDS_FOR_BUGS = '1-60';
/** Before anything starts: a wrong name ends the command. */
const bugs = options.bugs === 'all' ? BUGS : named(options.bugs ?? options.bug);
const folder = mkdtempSync(join(tmpdir(), 'callplane-simulation-'));
/** @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set();
let isStopped = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    isStopped = true;
    for (const child of children) child.kill('SIGTERM');
  });
}
let stop = async () => undefined;
try {
  stop = await startPostgres();
  process.exitCode = options.bugs !== undefined ? await findBugs() : await runSeeds();
} finally {
  await stop();
  rmSync(folder, { recursive: true, force: true });
}

async function runSeeds() {
  const file = await bundleTo('product', bugs[0]?.patches ?? []);
  const args = process.argv.slice(2).filter((arg, at, all) => arg !== '--bug' && all[at - 1] !== '--bug');
  const { code } = await simulation(file, args, 'inherit');
  if (bugs.length > 0) console.log(`With the seeded bug ${options.bug}: reproduce it with --bug ${options.bug}, too.`);
  return code;
}

/**
 * The seeded bugs of these names, which commas separate.
 * @param {string | undefined} names
 */
function named(names) {
  if (names === undefined) return [];
  const unknown = names.split(',').filter((name) => !BUGS.some((bug) => bug.name === name));
  if (unknown.length === 0) return BUGS.filter(({ name }) => names.split(',').includes(name));
  console.error(`There is no seeded bug ${unknown.join(', ')}. lab/simulation/bugs.mjs names all.`);
  process.exit(1);
}

/** @returns 0 if every bug is found. */
async function findBugs() {
  const waiting = bugs.values();
  let missed = 0;
  const work = async () => {
    for (const bug of waiting) {
      if (isStopped) return;
      if (!(await findBug(bug))) missed += 1;
    }
  };
  // A simulation waits for PostgreSQL for most of its time.
  await Promise.all(Array.from({ length: Number(options.jobs) }, work));
  if (isStopped) return 130;
  console.log(`${missed} seeded bugs were not found.`);
  return missed === 0 ? 0 : 1;
}

/** @returns whether the bug was found. */
async function findBug(/** @type {(typeof BUGS)[number]} */ bug) {
  const seeds = options.seeds ?? SEEDS_FOR_BUGS;
  const file = await bundleTo(bug.name, bug.patches);
  const { code, output } = await simulation(file, ['--brief', '--seeds', seeds], 'pipe');
  rmSync(join(folder, bug.name), { recursive: true, force: true });
  const seconds = /^Processor time: ([\d.]+) s$/m.exec(output)?.[1] ?? '?';
  const broken = /^BROKEN ([\w-]+): (.*)$/m.exec(output);
  const run = broken === null ? output : output.slice(0, broken.index);
  const seed = [...run.matchAll(/^seed (\d+):/gm)].at(-1)?.[1] ?? '?';
  if (isStopped) return true;
  const found = code === 0 ? 'nothing' : (broken?.[1] ?? `a crash: ${output.slice(-600)}`);
  console.log(`| ${bug.name} | ${bug.what} | ${found} | ${code === 0 ? `none of ${seeds}` : seed} | ${seconds} s |`);
  // A crash of the simulation itself finds nothing.
  return broken !== null;
}

/**
 * @param {string} name
 * @param {readonly { file: string, find: string, replace: string }[]} patches
 */
async function bundleTo(name, patches) {
  const out = join(folder, name);
  await bundle(out, patches);
  return join(out, 'simulation.mjs');
}

/**
 * Runs a bundle on a database of its own.
 * @param {string} file
 * @param {readonly string[]} args
 * @param {'inherit' | 'pipe'} output
 * @returns {Promise<{ code: number, output: string }>}
 */
async function simulation(file, args, output) {
  if (isStopped) return { code: 130, output: '' };
  const adminUrl = String(process.env['TEST_POSTGRES_URL']);
  const name = `simulation_${randomBytes(6).toString('hex')}`;
  await asAdmin(adminUrl, `CREATE DATABASE ${name} TEMPLATE callplane_template`);
  const url = Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href;
  const child = spawn(process.execPath, ['--enable-source-maps', file, '--url', url, ...args], {
    stdio: ['ignore', output, output],
  });
  children.add(child);
  let text = '';
  child.stdout?.on('data', (chunk) => (text += chunk));
  child.stderr?.on('data', (chunk) => (text += chunk));
  const code = await new Promise((resolveCode) => child.once('close', (exit) => resolveCode(exit ?? 1)));
  children.delete(child);
  await asAdmin(adminUrl, `DROP DATABASE ${name} WITH (FORCE)`);
  return { code, output: text };
}

/** @param {string} adminUrl @param {string} statement */
async function asAdmin(adminUrl, statement) {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Starts a PostgreSQL with the migrated template, unless Jest has. */
async function startPostgres() {
  if (process.env['TEST_POSTGRES_URL'] !== undefined) return async () => undefined;
  const { startSharedPostgres } = await import(
    resolve(import.meta.dirname, '../../packages/testing/dist/shared-postgres.js')
  );
  return startSharedPostgres();
}
