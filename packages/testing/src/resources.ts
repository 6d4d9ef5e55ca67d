import { startWatchdog, type Watchdog } from '@callplane/local-servers';

/**
 * What a test file has started. The Jest environment (jest/environment.mjs) stops it, newest first, after the file's
 * last hook; a watchdog stops it when Jest itself is killed.
 */
const scope = globalThis as { [key: symbol]: unknown };
const KEY = Symbol.for('callplane.resources');
const stops = (scope[KEY] ??= []) as (() => Promise<unknown>)[];
let watchdog: Watchdog | undefined;

/** Has `stop` called when the test file is over, whether it passed or not. It must be idempotent. */
export function stopAtEnd(stop: () => Promise<unknown>): void {
  stops.push(stop);
}

/** Registers a process that the test file has started: nothing that is left behind survives the run. */
export function superviseProcess(
  pid: number,
  stop: () => Promise<unknown>,
  politeSignal: 'TERM' | 'INT' = 'TERM',
): void {
  if (watchdog === undefined) {
    const started = startWatchdog();
    watchdog = started;
    // Registered before everything it watches, so it goes last.
    stops.unshift(() => {
      started.release();
      return Promise.resolve();
    });
  }
  watchdog.watch(pid, politeSignal);
  stopAtEnd(stop);
}

/** To be called when a supervised process is gone, so that a later one with its id is left alone. */
export function forgetProcess(pid: number): void {
  watchdog?.unwatch(pid);
}
