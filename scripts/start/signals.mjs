import { readFileSync } from 'node:fs';

const PARENTS_LOOK_EVERY_MS = 500;
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
    const above = ancestors();
    setInterval(() => {
      if (ancestors() !== above) stop('npm is gone');
    }, PARENTS_LOOK_EVERY_MS).unref();
  }
  return {
    stopSignal: stopping.signal,
    /** Begins the stop without a signal, as after a failure. */
    beginStop: () => stopping.abort(),
    /** @param {() => void} action what an immediate stop does */
    onKillNow: (action) => {
      killNow = action;
    },
  };
}

/** This process's parent and grandparent: npm may have put a shell between itself and its script. */
function ancestors() {
  try {
    const stat = readFileSync(`/proc/${process.ppid}/stat`, 'utf8');
    return `${process.ppid} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]}`;
  } catch {
    return String(process.ppid);
  }
}
