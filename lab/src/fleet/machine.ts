import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf, type LocalServer } from '@callplane/local-servers';
import type { Processes } from './processes.js';

/** Pause of the supervisor before it starts a process again. */
const RESTART_PAUSE_MS = 500;
const LOOK_EVERY_MS = 100;
/** How long a supervisor tries to start a process, in milliseconds. */
const START_WITHIN_MS = 300_000;

/** Starts a process, and tells its id as soon as it exists, which is before it is ready. */
export type Begin = (onSpawn: (pid: number) => void) => Promise<LocalServer>;

/** A process of the fleet, with a supervisor that starts it again, as systemd or Kubernetes does. */
export class Machine {
  /** Called when the process that ran ends although it was neither killed nor stopped, or cannot be started again. */
  onDied: (how: string) => void = () => undefined;
  #server: LocalServer | undefined;
  #pid: number | undefined;
  #frozen: number[] = [];
  #isWanted = false;
  #starting: Promise<void> | undefined;

  constructor(
    readonly name: string,
    readonly begin: Begin,
    private readonly processes: Pick<Processes, 'watch' | 'unwatch'>,
    private readonly startWithinMs = START_WITHIN_MS,
  ) {}

  /**
   * Resolves when the process runs.
   * @throws Error if it cannot be started in time.
   */
  async start(): Promise<void> {
    this.#isWanted = true;
    while (this.#isMissing()) await this.#startOnce();
  }

  #isMissing(): boolean {
    return this.#isWanted && this.#server === undefined;
  }

  #startOnce(): Promise<void> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  get pid(): number | undefined {
    return this.#pid;
  }

  /** SIGKILL to the process and its children, which may be frozen, or serve on alone. It stays down until `start`. */
  kill(): void {
    this.#isWanted = false;
    this.#frozen = [];
    const pid = this.#pid;
    if (pid !== undefined) for (const each of [pid, ...childrenOf(pid)]) signal(each, 'SIGKILL');
    this.#forget();
  }

  /** SIGSTOP to the process and its children, the parent first. */
  freeze(): void {
    if (this.#pid === undefined) return;
    signal(this.#pid, 'SIGSTOP');
    this.#frozen = [this.#pid, ...childrenOf(this.#pid)];
    for (const pid of this.#frozen) signal(pid, 'SIGSTOP');
  }

  thaw(): void {
    for (const pid of this.#frozen.splice(0)) signal(pid, 'SIGCONT');
  }

  /** Stops it gracefully. It stays down until `start`. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    this.thaw();
    await this.#starting?.catch(() => undefined);
    const server = this.#server;
    const pid = this.#pid;
    this.#server = undefined;
    await server?.stop();
    if (this.#pid === pid) this.#forget();
  }

  #forget(): void {
    if (this.#pid !== undefined) this.processes.unwatch(this.#pid);
    this.#server = undefined;
    this.#pid = undefined;
  }

  /** Tries until it runs: an app may refuse to start while its database is away. */
  async #start(): Promise<void> {
    const untilMs = performance.now() + this.startWithinMs;
    while (this.#isWanted) {
      try {
        const server = await this.begin((pid) => {
          this.#pid = pid;
          this.processes.watch(pid);
        });
        // Killed at the moment when it was ready.
        if (this.#pid !== server.pid) continue;
        this.#server = server;
        server.onExit(({ code, signal: by }) => this.#exited(server, by ?? `code ${code ?? '?'}`));
        return;
      } catch (error) {
        const [reason = ''] = (error as Error).message.split('\n');
        this.#forget();
        if (performance.now() > untilMs)
          throw new Error(`${this.name} did not start within ${this.startWithinMs / 1000} s: ${reason}`, {
            cause: error,
          });
        await delay(RESTART_PAUSE_MS);
      }
    }
  }

  #exited(server: LocalServer, how: string): void {
    if (this.#server !== server) return;
    this.#forget();
    this.onDied(how);
    void delay(RESTART_PAUSE_MS)
      .then(() => (this.#isWanted ? this.start() : undefined))
      .catch((error: unknown) => this.onDied((error as Error).message));
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** @throws Error with `failure` if that takes too long: the run could not end. */
export async function until(failure: string, withinMs: number, isReached: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + withinMs;
  while (!(await isReached())) {
    if (performance.now() > untilMs) throw new Error(`${failure} within ${withinMs / 1000} s`);
    await delay(LOOK_EVERY_MS);
  }
}
