import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Failure } from '../lib/failure.mjs';
import { root } from '../lib/files.mjs';

/**
 * The apps, in the order in which they start. `readyPort` names the variable with the port that answers /readyz:
 * apps that serve HTTP do it on PORT, workers on HEALTH_PORT. `needsKeys`: starts once the development keys are there.
 * @typedef {{ name: string, readyPort: 'PORT' | 'HEALTH_PORT', needsKeys?: true }} App
 * @type {App[]}
 */
export const APPS = [
  { name: 'api', readyPort: 'PORT' },
  { name: 'cleanup-worker', readyPort: 'HEALTH_PORT' },
  { name: 'webhook-worker', readyPort: 'HEALTH_PORT' },
  { name: 'signaling', readyPort: 'PORT', needsKeys: true },
];

/** As docs/operations.md recommends: fewer and shorter collections of what a request leaves behind, for more memory. */
export const NODE_FLAGS = ['--max-semi-space-size=64'];

const READY_WITHIN_MS = 60_000;
const LOOK_EVERY_MS = 50;

/**
 * Starts an app as a process of its own and waits until it is ready. Its output goes to its log file and not through
 * this process: an app must not stand still because somebody has paused the terminal.
 *
 * @param {object} app
 * @param {string} app.name
 * @param {NodeJS.ProcessEnv} app.env
 * @param {string} app.readyUrl
 * @param {string} app.logFile
 * @param {number} app.stopWithinMs how long SIGTERM may take before SIGKILL
 * @param {(pid: number) => void} app.onSpawn
 * @param {AbortSignal} app.stopSignal gives up waiting
 * @param {typeof import('@callplane/local-servers')} servers
 * @returns {Promise<import('./keep-running.mjs').Running>}
 */
export async function startApp({ name, env, readyUrl, logFile, stopWithinMs, onSpawn, stopSignal }, servers) {
  const log = servers.openLog(logFile);
  const logStart = servers.sizeOf(logFile);
  const main = join(root, 'apps', name, 'dist', 'main.js');
  // In a session of its own, so that Ctrl-C reaches this supervisor alone, which then stops things in order.
  const child = spawn(process.execPath, [...NODE_FLAGS, main], {
    env,
    cwd: root,
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  /** @type {Promise<{ code: number | null, signal: string | null }>} */
  const exited = new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', () => {
      if (child.pid === undefined) resolve({ code: null, signal: null });
    });
  });
  const { pid } = child;
  if (pid === undefined) throw new Failure(`${name} cannot be run: ${main}`);
  onSpawn(pid);

  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      await servers.stopProcess(pid, [
        { signal: 'SIGTERM', graceMs: stopWithinMs },
        { signal: 'SIGKILL', graceMs: 5_000 },
      ]);
    }
    await exited;
  };
  const said = () => servers.tailOf(logFile, logStart, 40);

  const until = performance.now() + READY_WITHIN_MS;
  while (!(await answers(readyUrl))) {
    const gone = await Promise.race([exited, delay(LOOK_EVERY_MS)]);
    if (gone !== undefined) throw new AppExit(name, gone, said());
    if (performance.now() < until && !stopSignal.aborted) continue;
    await stop();
    stopSignal.throwIfAborted();
    throw new Failure(`${name} was not ready within ${READY_WITHIN_MS / 1000} s`, said());
  }
  return { pid, stop, onExit: (listener) => void exited.then(listener) };
}

/** An app that ended before it was ready. */
export class AppExit extends Failure {
  /**
   * @param {string} name
   * @param {{ code: number | null, signal: string | null }} exit
   * @param {string} output
   */
  constructor(name, { code, signal }, output) {
    super(`${name} ended before it was ready (${signal ?? `exit code ${code}`})`, output);
    this.code = code;
  }
}

/** @param {string} url */
async function answers(url) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(3_000), headers: { connection: 'close' } });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}
