import { spawn } from 'node:child_process';

/** Kills the watched processes when the process that started it has exited, for any reason. */
export interface Watchdog {
  readonly pid: number;
  /** Watches a process. `signal` asks it to stop; SIGKILL follows ten seconds later. */
  watch(pid: number, signal: 'TERM' | 'INT'): void;
  unwatch(pid: number): void;
  /** Stops watching all processes and ends the watchdog. */
  release(): void;
}

// Reads the newest list until end of file, which the kernel delivers even if the writer was killed. The list is one
// line: "TERM pids… , INT pids…". The files in "$@" describe the run, which is over by then, so the script removes them
// first.
const SCRIPT = `
while read -r line; do list=$line; done
[ -n "$list" ] || exit 0
rm -f -- "$@"
term=\${list%%,*} int=\${list#*,}
kill -TERM $term 2>/dev/null
kill -INT $int 2>/dev/null
for try in 1 2 3 4 5 6 7 8 9 10; do
  left=
  for pid in $term $int; do kill -0 "$pid" 2>/dev/null && left="$left $pid"; done
  [ -n "$left" ] || exit 0
  sleep 1
done
kill -KILL $left 2>/dev/null
`;

/**
 * Starts the watchdog: a small shell in its own session that holds only the reading end of a pipe. It deletes
 * `removeFiles` when it has to act. It does not keep the calling process alive.
 */
export function startWatchdog(removeFiles: string[] = []): Watchdog {
  const child = spawn('/bin/sh', ['-c', SCRIPT, 'callplane-watchdog', ...removeFiles], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const { pid, stdin } = child;
  if (pid === undefined) throw new Error('cannot run /bin/sh');
  child.unref();
  (stdin as typeof stdin & { unref?: () => void }).unref?.();
  // If the watchdog was killed, the watched processes go on without it.
  stdin.on('error', () => undefined);
  const watched = new Map<number, 'TERM' | 'INT'>();
  const list = (signal: string) =>
    [...watched]
      .filter(([, expected]) => expected === signal)
      .map(([watchedPid]) => watchedPid)
      .join(' ');
  const report = () => stdin.write(watched.size === 0 ? '\n' : `${list('TERM')},${list('INT')}\n`);
  return {
    pid,
    watch: (watchedPid, signal) => {
      watched.set(watchedPid, signal);
      report();
    },
    unwatch: (watchedPid) => {
      if (watched.delete(watchedPid)) report();
    },
    release: () => {
      watched.clear();
      stdin.end('\n');
    },
  };
}
