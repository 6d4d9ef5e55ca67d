import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { toolsEnvironment } from './dependencies.mjs';
import { root } from './files.mjs';
import { run } from './run.mjs';

/** The programs of `npm start`. The laboratory, the tests' own package and their own imports are not part of it. */
const STARTED = [
  'api',
  'cleanup-worker',
  'recorder',
  'webhook-worker',
  'signaling',
  'cli',
  'console',
  'demo',
  'dev',
  'server',
];

/**
 * The packages that a command needs, each with its imports; undefined for all.
 * @param {string} command
 */
export function packagesOf(command) {
  if (command === 'docs') return ['dev'];
  return command === 'start' || command === 'rtc' ? STARTED : undefined;
}

/** Whether `rtc` can run. It is an operator's tool: it must not build, and works in a clone of another user. */
export function hasCommandLine() {
  return ['apps/cli', 'packages/dev'].every((folder) => existsSync(join(root, folder, 'dist')));
}

/**
 * Compiles changed packages. turbo compares the sources with earlier builds, in 0.3 s if nothing has changed.
 * @param {string[] | undefined} packages
 * @param {import('./progress.mjs').Step} step
 * @param {AbortSignal} [signal]
 */
export async function build(packages, step, signal) {
  const filters = (packages ?? []).map((name) => `--filter=@callplane/${name}...`);
  const turbo = join(root, 'node_modules', 'turbo', 'bin', 'turbo');
  const args = [turbo, 'run', 'build', '--output-logs=errors-only', '--ui=stream', '--concurrency=4', ...filters];
  await step('Building', () =>
    run(process.execPath, args, { env: toolsEnvironment(), signal, failure: 'The build failed' }),
  );
}
