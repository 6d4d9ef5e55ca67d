/** npm forwards a Ctrl-C that the terminal has already delivered, so two signals within this time are one key press. */
const SAME_KEY_PRESS_MS = 1_000;

export interface Signals {
  stopSignal: AbortSignal;
  /** Begins the stop without a signal, as after a failure. */
  beginStop: () => void;
  /** Sets the action of an immediate stop. */
  onKillNow: (action: () => void) => void;
}

/**
 * Turns signals into one abort. The first signal requests an orderly stop, a second Ctrl-C an immediate one.
 */
export function handleSignals(say: (line: string) => void): Signals {
  const stopping = new AbortController();
  let killNow: () => void = () => undefined;
  let firstAt = 0;
  const stop = (reason: string) => {
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
  // A closed terminal must not interrupt an orderly stop.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);

  return {
    stopSignal: stopping.signal,
    beginStop: () => stopping.abort(),
    onKillNow: (action) => {
      killNow = action;
    },
  };
}
