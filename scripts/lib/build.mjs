import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { BUNDLED_APPS, bundleOf, PAGES, SHARED_CHUNKS } from './bundles.mjs';
import { manifests, toolsEnvironment } from './dependencies.mjs';
import { readJson, root } from './files.mjs';
import { run } from './run.mjs';

/**
 * One of two builds. The mark in its file says of which sources the last one is.
 * @typedef {{ mark: string, outputs: () => string[], make: (signal: AbortSignal | undefined) => Promise<unknown> }} Build
 */

const NOT_SOURCES = new Set(['node_modules', 'dist', 'dist.fresh', 'generated', '.turbo']);
/**
 * Packages that run as compiled files: those of the local start and `rtc`, which find other files by their own place, with
 * the packages that they import, and those that the first example of the README imports.
 */
const COMPILED_FOR_START = ['core', 'db', 'dev', 'local-servers', 'migrations', 'webhook-verifier', 'server-js'];

/**
 * Everything: each package compiled, for tests, images and checks.
 * @type {Build}
 */
export const FULL_BUILD = { mark: '.callplane-built', outputs: everyOutput, make: buildAll };

/**
 * What `npm start` and `rtc` run: one file for each app, the pages, and a few compiled packages. It takes a
 * fraction of the whole build (docs/benchmarks/start.md). A clone in which no test runs needs no other.
 * @type {Build}
 */
export const START_BUILD = { mark: '.callplane-start-built', outputs: startOutputs, make: buildForStart };

/**
 * Whether the last such build is of exactly these sources. Compares names, sizes and times, in about 10 ms; turbo takes
 * one second.
 * @param {Build} build
 */
export function isBuilt({ mark, outputs }) {
  const file = join(root, 'node_modules', mark);
  if (!existsSync(file) || readFileSync(file, 'utf8') !== sourcesMark()) return false;
  return outputs().every((output) => existsSync(join(root, output)));
}

/**
 * @param {Build} build
 * @param {import('./progress.mjs').Step} step
 * @param {AbortSignal} [signal]
 */
export async function ensureBuilt(build, step, signal) {
  if (isBuilt(build)) return;
  // Taken before the build, so that a source that changes during the build triggers another one.
  const mark = sourcesMark();
  await step('Building', () => build.make(signal));
  writeFileSync(join(root, 'node_modules', build.mark), mark);
}

/** @param {AbortSignal | undefined} signal */
function buildAll(signal) {
  const turbo = join(root, 'node_modules', 'turbo', 'bin', 'turbo');
  const args = [turbo, 'run', 'build', '--output-logs=errors-only', '--ui=stream', '--concurrency=4'];
  return run(process.execPath, args, { env: toolsEnvironment(), signal, failure: 'The build failed' });
}

/** @param {AbortSignal | undefined} signal */
async function buildForStart(signal) {
  const options = { env: toolsEnvironment(), signal, failure: 'The build failed' };
  const bundles = [join(root, 'scripts', 'lib', 'make-bundles.mjs')];
  // The bundles are the only part that a whole build does not contain.
  if (isBuilt(FULL_BUILD)) return run(process.execPath, bundles, options);
  const database = join(root, 'packages', 'db');
  const compile = async () => {
    const compiler = join(root, 'node_modules', 'typescript-7', 'bin', 'tsc');
    for (const name of COMPILED_FOR_START) {
      await run(process.execPath, [compiler, '-p', join('packages', name, 'tsconfig.build.json')], options);
    }
  };
  await run('sh', ['-c', readJson(join(database, 'package.json')).scripts.generate], {
    ...options,
    cwd: database,
    // As pnpm would run the script, which alone takes 0.5 s of processor time.
    env: { ...options.env, PATH: `${join(database, 'node_modules', '.bin')}:${options.env.PATH}` },
  });
  await compile();
  // The bundler leaves the migrations out of `rtc` only if their compiled form is there.
  await run(process.execPath, [...bundles, '--pages'], options);
}

function sourcesMark() {
  const hash = createHash('sha256');
  const compilers = ['base', 'build', 'package', 'cjs'].map((name) => `tsconfig.${name}.json`);
  const settings = ['pnpm-lock.yaml', 'turbo.json', ...compilers];
  for (const file of [...settings, 'scripts/lib/make-bundles.mjs', ...manifests()]) add(hash, file);
  for (const folder of ['apps', 'packages', 'lab/src', 'prisma']) addFolder(hash, folder);
  return hash.digest('hex');
}

/**
 * @param {import('node:crypto').Hash} hash
 * @param {string} folder
 */
function addFolder(hash, folder) {
  if (!existsSync(join(root, folder))) return;
  const entries = readdirSync(join(root, folder), { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!NOT_SOURCES.has(entry.name)) addFolder(hash, path);
    } else if (!/\.test\.ts$/.test(entry.name)) add(hash, path);
  }
}

/**
 * @param {import('node:crypto').Hash} hash
 * @param {string} file
 */
function add(hash, file) {
  const { size, mtimeMs } = statSync(join(root, file));
  hash.update(`${file} ${size} ${mtimeMs}\n`);
}

/** The folders that every built or generated package must have after the build. */
function everyOutput() {
  return manifests().flatMap((file) => {
    const { scripts = {} } = readJson(join(root, file));
    if (file === 'package.json') return [];
    return [
      ...(scripts.build ? [join(dirname(file), 'dist')] : []),
      ...(scripts.generate ? [join(dirname(file), 'src', 'generated')] : []),
    ];
  });
}

function startOutputs() {
  return [
    SHARED_CHUNKS.slice(root.length + 1),
    ...BUNDLED_APPS.map((name) => bundleOf(name).slice(root.length + 1)),
    ...COMPILED_FOR_START.map((name) => join('packages', name, 'dist')),
    ...PAGES.map((name) => join('apps', name, 'dist')),
  ];
}
