import { join } from 'node:path';
import { build } from './build.mjs';
import { ensureDependencies, ensurePnpm } from './dependencies.mjs';
import { Failure } from './failure.mjs';
import { root } from './files.mjs';
import { waitForLock } from './lock.mjs';
import { progress } from './progress.mjs';

const NODE_AT_LEAST = [20, 19];

/**
 * Makes a clone runnable: the pinned pnpm, the dependencies and the build, each only if it is missing or out of date.
 * Needs only Node and npm, never prompts, and is safe to run several times at once.
 * @param {{ say: (line: string) => void, signal: AbortSignal, packages?: string[] | undefined }} options
 *   `packages` names the packages to build; undefined for all
 */
export async function bootstrap({ say, signal, packages }) {
  checkNode();
  const step = progress(say);
  const release = await waitForLock(join(root, '.tools', 'setup.lock'), { say, signal, what: 'set-up of this clone' });
  try {
    await ensurePnpm(step, signal);
    await ensureDependencies(step, signal);
    await build(packages, step, signal);
  } finally {
    release();
  }
}

export function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const [leastMajor = 0, leastMinor = 0] = NODE_AT_LEAST;
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return;
  throw new Failure(`Node ${NODE_AT_LEAST.join('.')} or later is needed; this is ${process.versions.node}`);
}
