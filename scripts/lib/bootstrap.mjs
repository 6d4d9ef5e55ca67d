import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ensureBuilt, FULL_BUILD, isBuilt } from './build.mjs';
import { ensureDependencies, ensurePnpm, hasDependencies, hasPnpm } from './dependencies.mjs';
import { Failure } from './failure.mjs';
import { root } from './files.mjs';
import { takeLock } from './lock.mjs';
import { progress } from './progress.mjs';

const NODE_AT_LEAST = [20, 19];
const LOOK_EVERY_MS = 200;

/**
 * Makes a clone runnable: the pinned pnpm, the dependencies and the build, each only if it is missing or out of date.
 * Needs only Node and npm, never prompts, and is safe to run several times at once.
 * @param {{ say: (line: string) => void, signal: AbortSignal, build?: import('./build.mjs').Build }} options
 */
export async function bootstrap({ say, signal, build = FULL_BUILD }) {
  checkNode();
  if (hasPnpm() && hasDependencies() && isBuilt(build)) return;
  const step = progress(say);
  const release = await takeTurn(say, signal);
  try {
    await ensurePnpm(step, signal);
    await ensureDependencies(step, signal);
    await ensureBuilt(build, step, signal);
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

/**
 * @param {(line: string) => void} say
 * @param {AbortSignal} signal
 */
async function takeTurn(say, signal) {
  const file = join(root, '.tools', 'setup.lock');
  let said = false;
  for (;;) {
    const lock = takeLock(file);
    if ('release' in lock) return lock.release;
    if (!said) say(`  Waiting for another set-up of this clone (process ${lock.owner})…`);
    said = true;
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}
