import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { manifests, toolsEnvironment } from './dependencies.mjs';
import { readJson, root } from './files.mjs';
import { run } from './run.mjs';

const builtMark = join(root, 'node_modules', '.callplane-built');
const NOT_SOURCES = new Set(['node_modules', 'dist', 'generated', '.turbo']);

/**
 * Whether the last build is of exactly these sources. Compares names, sizes and times, in about 10 ms; turbo takes one
 * second.
 */
export function isBuilt() {
  if (!existsSync(builtMark) || readFileSync(builtMark, 'utf8') !== sourcesMark()) return false;
  return outputs().every((output) => existsSync(join(root, output)));
}

/**
 * @param {import('./progress.mjs').Step} step
 * @param {AbortSignal} [signal]
 */
export async function ensureBuilt(step, signal) {
  if (isBuilt()) return;
  // Taken before the build, so that a source that changes during the build triggers another one.
  const mark = sourcesMark();
  const turbo = join(root, 'node_modules', 'turbo', 'bin', 'turbo');
  const args = [turbo, 'run', 'build', '--output-logs=errors-only', '--ui=stream', '--concurrency=4'];
  await step('Building', () =>
    run(process.execPath, args, { env: toolsEnvironment(), signal, failure: 'The build failed' }),
  );
  writeFileSync(builtMark, mark);
}

function sourcesMark() {
  const hash = createHash('sha256');
  for (const file of ['pnpm-lock.yaml', 'turbo.json', 'tsconfig.base.json', 'tsconfig.build.json', ...manifests()])
    add(hash, file);
  for (const folder of ['apps', 'packages', 'prisma']) addFolder(hash, folder);
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
function outputs() {
  return manifests().flatMap((file) => {
    const { scripts = {} } = readJson(join(root, file));
    if (file === 'package.json') return [];
    return [
      ...(scripts.build ? [join(dirname(file), 'dist')] : []),
      ...(scripts.generate ? [join(dirname(file), 'src', 'generated')] : []),
    ];
  });
}
