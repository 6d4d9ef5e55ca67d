import { setTimeout as delay } from 'node:timers/promises';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;
/** After a run of this length, the next restart delay is the shortest one again. */
const GOOD_RUN_MS = 30_000;

/** A process that `begin` has started, once it is ready. */
export interface Running {
  pid: number;
  stop: () => Promise<unknown>;
  onExit: (listener: (exit: { code: number | null; signal: string | null }) => void) => void;
}

export interface KeepRunningOptions<R> {
  name: string;
  /** Starts the process. Must give up soon after `stopSignal`. */
  begin: () => Promise<R>;
  say: (line: string) => void;
  /** Prevents every later restart. */
  stopSignal: AbortSignal;
  isPassing?: (error: unknown) => boolean;
}

/**
 * Keeps one process running: starts it, and restarts it when it dies, after a delay that grows from 0.5 s to 15 s. If
 * the very first start fails, rejects with its error, unless `isPassing` says that the failure may be temporary.
 */
export async function keepRunning<R extends Running>({
  name,
  begin,
  say,
  stopSignal,
  isPassing = () => false,
}: KeepRunningOptions<R>): Promise<{ first: R; stop: () => Promise<void> }> {
  let delayMs = FIRST_DELAY_MS;

  const beginAgain = async (howItEnded: string): Promise<R> => {
    for (let reason = howItEnded; ;) {
      say(`${name} ${reason}; restarts in ${delayMs / 1000} s`);
      await delay(delayMs, undefined, { signal: stopSignal });
      delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS);
      try {
        return await begin();
      } catch (error) {
        stopSignal.throwIfAborted();
        reason = `does not start (${firstLine(error)})`;
      }
    }
  };
  const beginFirst = async () => {
    try {
      return await begin();
    } catch (error) {
      if (stopSignal.aborted || !isPassing(error)) throw error;
      return beginAgain(`does not start (${firstLine(error)})`);
    }
  };

  const first = await beginFirst();
  /** The current process, or the pending restart. Resolves to undefined if the stop has prevented the restart. */
  let present: Promise<R | undefined> = Promise.resolve(first);

  const watch = (running: R) => {
    const beganAt = performance.now();
    running.onExit(({ code, signal }) => {
      if (stopSignal.aborted) return;
      if (performance.now() - beganAt > GOOD_RUN_MS) delayMs = FIRST_DELAY_MS;
      present = beginAgain(signal === null ? `exited with code ${code ?? '?'}` : `was ended by ${signal}`).then(
        (next) => {
          say(`${name} restarted (process ${next.pid})`);
          watch(next);
          return next;
        },
        () => undefined,
      );
    });
  };
  watch(first);

  return {
    first,
    stop: async () => {
      const running = await present;
      await running?.stop();
    },
  };
}

function firstLine(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
}
