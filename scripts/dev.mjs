/**
 * `node scripts/dev.mjs <command> [<argument>…]`: makes this clone runnable, then runs a command of packages/dev or lab. Only
 * this file and scripts/lib must run on a machine that has nothing but Node and npm.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bootstrap, checkNode } from './lib/bootstrap.mjs';
import { hasCommandLine, packagesOf } from './lib/build.mjs';
import { explain, Failure } from './lib/failure.mjs';
import { root } from './lib/files.mjs';
import { progress } from './lib/progress.mjs';
import { checkRedis, ensureStartPrograms } from './lib/start-programs.mjs';

/** Commands of lab/; all others are in packages/dev. */
const LAB = ['bench', 'torture', 'simulate'];
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

const [command = '', ...args] = process.argv.slice(2);
const stopping = new AbortController();
const stop = () => stopping.abort();
try {
  for (const signal of SIGNALS) process.on(signal, stop);
  // Standard output of `rtc` belongs to the command line alone.
  const say = command === 'rtc' ? console.error : console.log;
  await prepare(command, say);
  for (const signal of SIGNALS) process.off(signal, stop);
  stopping.signal.throwIfAborted();
  const folder = LAB.includes(command) ? 'lab' : join('packages', 'dev');
  const main = join(root, folder, 'dist', command, 'main.js');
  if (!existsSync(main)) throw new Failure(`There is no command "${command}"`);
  await (await import(pathToFileURL(main).href)).main(args);
} catch (error) {
  if (!stopping.signal.aborted) explain(error);
  process.exitCode = stopping.signal.aborted ? 130 : 1;
  // The last line of a test run always counts the tests.
  if (command === 'test') console.log('\n0 passed, 1 failed');
}

/**
 * Makes this clone runnable. The local start installs missing programs at the same time, because apt-get mostly waits for
 * the network and the disk.
 * @param {string} name
 * @param {(line: string) => void} say
 */
async function prepare(name, say) {
  const packages = packagesOf(name);
  if (name === 'rtc' && hasCommandLine()) return;
  if (name !== 'start') return bootstrap({ say, signal: stopping.signal, packages });
  checkNode();
  checkRedis();
  const programs = ensureStartPrograms({ say, step: progress(say), signal: stopping.signal });
  const failed = new AbortController();
  const signal = AbortSignal.any([stopping.signal, failed.signal]);
  // A failed build does not interrupt apt-get, which would leave half-installed packages.
  const [first, second] = await Promise.allSettled([
    programs.catch((error) => {
      failed.abort();
      throw error;
    }),
    bootstrap({ say, signal, packages }),
  ]);
  if (first.status === 'rejected') throw first.reason;
  if (second.status === 'rejected') throw second.reason;
}
