import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { childrenOf } from '@callplane/local-servers';

/** The part of a process that signals reach. */
type Interruptible = Pick<NodeJS.Process, 'on' | 'exit'>;

/**
 * Ends this process at the usual signals. At its exit, it ends the processes of the fleet and removes their files. A
 * further signal, such as the one that npm sends after the terminal's, does not interrupt this.
 */
export function exitOnSignals(own: Interruptible = process): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) own.on(signal, () => own.exit(130));
}

/**
 * The folder and the processes of one run, of which nothing is left after its end. If the run is killed, the kernel kills
 * the processes.
 */
export class Processes {
  readonly dir: string;
  readonly #pids = new Set<number>();
  readonly #cleanUps: (() => void)[] = [];
  readonly #atExit = (): void => this.destroy();

  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), 'callplane-lab-'));
    // The servers run as another user.
    chmodSync(this.dir, 0o755);
    process.once('exit', this.#atExit);
  }

  watch(pid: number): void {
    this.#pids.add(pid);
  }

  /** A process that has ended. Another one may get its id. */
  unwatch(pid: number): void {
    this.#pids.delete(pid);
  }

  /** Runs before the folder is removed. */
  onDestroy(cleanUp: () => void): void {
    this.#cleanUps.push(cleanUp);
  }

  /** Kills running processes, and removes the folder. Idempotent. */
  destroy(): void {
    process.off('exit', this.#atExit);
    for (const pid of this.#pids) {
      // Each server has a process group of its own. The processes of PostgreSQL leave it, and would outlive their parent
      // while they are frozen.
      for (const each of [...childrenOf(pid), -pid]) {
        try {
          process.kill(each, 'SIGKILL');
        } catch {
          // The process has ended already.
        }
      }
    }
    this.#pids.clear();
    for (const cleanUp of this.#cleanUps.splice(0)) cleanUp();
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}
