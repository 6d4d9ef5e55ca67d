const PARENT_LOOK_EVERY_MS = 1_000;
/** npm passes a Ctrl-C on that the terminal has delivered already: two signals at once are one key press. */
const SAME_KEY_PRESS_MS = 1_000;

/**
 * Turns signals into one abort. The first asks for an orderly stop, a second Ctrl-C for an immediate one. A start that
 * npm made also stops when npm is gone: killed, npm does not tell its scripts.
 * @param {(line: string) => void} say
 */
export function handleSignals(say) {
  const stopping = new AbortController();
  /** @type {() => void} */
  let killNow = () => undefined;
  let firstAt = 0;
  /** @param {string} reason */
  const stop = (reason) => {
    if (!stopping.signal.aborted) {
      firstAt = performance.now();
      say(`\nStopping (${reason}); Ctrl-C again kills`);
      stopping.abort();
    } else if (reason === 'SIGINT' && performance.now() - firstAt > SAME_KEY_PRESS_MS) {
      killNow();
      process.exit(130);
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop(signal));
  // A terminal that is gone must not end an orderly stop.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);

  if (process.env['npm_lifecycle_event'] !== undefined) {
    const parent = process.ppid;
    setInterval(() => {
      if (process.ppid !== parent) stop('npm is gone');
    }, PARENT_LOOK_EVERY_MS).unref();
  }
  return {
    stopSignal: stopping.signal,
    /** @param {() => void} action what an immediate stop does */
    onKillNow: (action) => {
      killNow = action;
    },
  };
}
