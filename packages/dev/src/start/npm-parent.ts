import { commandLineOf, isSameProcess, parentOf, processStamp, type RecordedProcess } from '@callplane/local-servers';

const LOOK_EVERY_MS = 500;
/** Matches the name of a package manager as a program, a script of Node or a process title (`npm start`). */
const PACKAGE_MANAGER = /(?:^|[\s/])(?:npm|pnpm|yarn)(?:[\s.-]|$)/;

/**
 * The npm that runs this script, or undefined. It is the parent, or the parent of a shell in between. The process that
 * started npm does not count, because it may end first, as a shell does after `npm start &`.
 * @public a program of the test calls it, which knip does not see.
 */
export function findNpm(): RecordedProcess | undefined {
  const { ppid } = process;
  for (const pid of [ppid, parentOf(ppid)]) {
    if (pid !== undefined && PACKAGE_MANAGER.test(commandLineOf(pid))) return { pid, stamp: processStamp(pid) };
  }
  return undefined;
}

/** Calls `onGone` once npm has ended. A killed npm does not notify its scripts. */
export function watchNpm(onGone: () => void): void {
  const npm = findNpm();
  if (npm === undefined) return;
  const timer = setInterval(() => {
    if (isSameProcess(npm)) return;
    clearInterval(timer);
    onGone();
  }, LOOK_EVERY_MS);
  timer.unref();
}
