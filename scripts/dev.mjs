/**
 * `node scripts/dev.mjs <command> [<argument>…]`: makes this clone runnable, then runs a command of packages/dev. Only
 * this file and scripts/lib must run on a machine that has nothing but Node and npm.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bootstrap } from './lib/bootstrap.mjs';
import { explain, Failure } from './lib/failure.mjs';
import { root } from './lib/files.mjs';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

const [command = '', ...args] = process.argv.slice(2);
const stopping = new AbortController();
const stop = () => stopping.abort();
const parent = process.ppid;
try {
  for (const signal of SIGNALS) process.on(signal, stop);
  // Standard output of `rtc` belongs to the command line alone.
  const say = command === 'rtc' ? console.error : console.log;
  await bootstrap({ say, signal: stopping.signal });
  // A killed npm does not notify its scripts.
  if (process.env['npm_lifecycle_event'] !== undefined && process.ppid !== parent) stop();
  for (const signal of SIGNALS) process.off(signal, stop);
  stopping.signal.throwIfAborted();
  const main = join(root, 'packages', 'dev', 'dist', command, 'main.js');
  if (!existsSync(main)) throw new Failure(`There is no command "${command}" in packages/dev/src`);
  await (await import(pathToFileURL(main).href)).main(args);
} catch (error) {
  if (!stopping.signal.aborted) explain(error);
  process.exitCode = stopping.signal.aborted ? 130 : 1;
  // The last line of a test run always counts the tests.
  if (command === 'test') console.log('\n0 passed, 1 failed');
}
