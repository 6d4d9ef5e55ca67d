import { setTimeout as delay } from 'node:timers/promises';
import { LocalServerError, type LocalServer } from '@callplane/local-servers';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;
/** A process that ran this long restarts at once. */
const GOOD_RUN_MS = 30_000;

export interface KeepRunningOptions<S> {
  name: string;
  /** Starts the process. Must give up soon after `stopSignal`. */
  begin: () => Promise<S>;
  say: (line: string) => void;
  /** Prevents every later restart. */
  stopSignal: AbortSignal;
}

/**
 * Keeps one process running: starts it, and restarts it when it dies, after a delay that grows from 0.5 s to 15 s while it
 * does not stay up.
 * @throws the error of the first start, unless the process was killed: that may pass. Exit code 1 means that it has
 *   reported wrong settings.
 */
export async function keepRunning<S extends LocalServer>({ name, begin, say, stopSignal }: KeepRunningOptions<S>) {
  let delayMs = FIRST_DELAY_MS;
  const beginAgain = async (howItEnded: string): Promise<S> => {
    for (let reason = howItEnded; ;) {
      say(`${name} ${reason}; restarts in ${delayMs / 1000} s`);
      await delay(delayMs, undefined, { signal: stopSignal });
      delayMs = Math.max(FIRST_DELAY_MS, Math.min(delayMs * 2, LONGEST_DELAY_MS));
      try {
        return await begin();
      } catch (error) {
        stopSignal.throwIfAborted();
        reason = `does not start (${firstLine(error)})`;
      }
    }
  };
  const first = await begin().catch((error: unknown) => {
    const isPassing = error instanceof LocalServerError && error.exit?.signal != null;
    if (stopSignal.aborted || !isPassing) throw error;
    return beginAgain(`does not start (${firstLine(error)})`);
  });

  /** The current process, or the pending restart. Resolves to undefined if the stop has prevented the restart. */
  let present: Promise<S | undefined> = Promise.resolve(first);
  const watch = (running: S) => {
    const beganAt = performance.now();
    running.onExit(({ code, signal }) => {
      if (stopSignal.aborted) return;
      if (performance.now() - beganAt > GOOD_RUN_MS) delayMs = 0;
      const next = beginAgain(signal === null ? `exited with code ${code ?? '?'}` : `was ended by ${signal}`);
      present = next.catch(() => undefined);
      void next.then((server) => {
        say(`${name} restarted (process ${server.pid})`);
        watch(server);
      }, ignore);
    });
  };
  watch(first);
  return { first, stop: async () => (await present)?.stop() };
}

const ignore = (): void => undefined;

function firstLine(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
}
