import { setTimeout as delay } from 'node:timers/promises';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;
/** After this long without a failure the next one is a first one again. */
const GOOD_RUN_MS = 30_000;

/**
 * @typedef {object} Running what `begin` resolves to, once it is ready
 * @property {number} pid
 * @property {() => Promise<unknown>} stop
 * @property {(listener: (exit: { code: number | null, signal: string | null }) => void) => void} onExit
 */

/**
 * Keeps one process running: begins it, and begins it again when it dies, after a delay that grows from 0.5 s to 15 s.
 * When the very first begin fails, that is the caller's, unless `isPassing` says that the failure may pass.
 *
 * @template {Running} R
 * @param {object} what
 * @param {string} what.name
 * @param {() => Promise<R>} what.begin must give up soon after `stopSignal`
 * @param {(line: string) => void} what.say
 * @param {AbortSignal} what.stopSignal from then on nothing is begun again
 * @param {(error: unknown) => boolean} [what.isPassing]
 * @returns {Promise<{ first: R, stop: () => Promise<void> }>}
 */
export async function keepRunning({ name, begin, say, stopSignal, isPassing = () => false }) {
  let delayMs = FIRST_DELAY_MS;

  /**
   * @param {string} how it ended
   * @returns {Promise<R>}
   */
  const beginAgain = async (how) => {
    for (let reason = how; ;) {
      say(`${name} ${reason}; it starts again in ${delayMs / 1000} s`);
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
  /** Settles once whatever is under way has led to a running process, or to none because of the stop. */
  let present = /** @type {Promise<any>} */ (Promise.resolve(first));

  /** @param {R} running */
  const watch = (running) => {
    const beganAt = performance.now();
    running.onExit(({ code, signal }) => {
      if (stopSignal.aborted) return;
      if (performance.now() - beganAt > GOOD_RUN_MS) delayMs = FIRST_DELAY_MS;
      present = beginAgain(signal === null ? `exited with code ${code}` : `was ended by ${signal}`).then(
        (next) => {
          say(`${name} runs again (process ${next.pid})`);
          watch(next);
          return next;
        },
        () => undefined,
      );
    });
  };
  watch(first);

  return { first, stop: async () => void (await (await present)?.stop()) };
}

/** @param {unknown} error */
function firstLine(error) {
  return error instanceof Error ? error.message.split('\n')[0] : String(error);
}
