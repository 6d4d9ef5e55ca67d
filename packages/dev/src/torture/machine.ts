import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf, type LocalServer } from '@callplane/local-servers';

/** Pause of the supervisor before it starts a process again. */
const RESTART_PAUSE_MS = 500;

/** A process of the fleet, with a supervisor that starts it again, as systemd or Kubernetes does. */
export class Machine {
  /** Called when the process ends although it was neither killed nor stopped. */
  onDied: (how: string) => void = () => undefined;
  #server: LocalServer | undefined;
  #frozen: number[] = [];
  #isWanted = false;
  #runs = false;
  #starting: Promise<void> | undefined;

  constructor(
    readonly name: string,
    readonly begin: () => Promise<LocalServer>,
  ) {}

  /** Resolves when the process runs. */
  async start(): Promise<void> {
    this.#isWanted = true;
    if (this.#runs) return;
    await this.#startOnce();
  }

  #startOnce(): Promise<void> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  get pid(): number {
    if (this.#server === undefined) throw new Error(`${this.name} does not run`);
    return this.#server.pid;
  }

  /** SIGKILL to the process and its children, which may be frozen, or serve on alone. It stays down until `start`. */
  kill(): void {
    this.#isWanted = false;
    this.#frozen = [];
    this.#runs = false;
    for (const pid of [this.pid, ...childrenOf(this.pid)]) signal(pid, 'SIGKILL');
  }

  /** SIGSTOP to the process and its children, the parent first. */
  freeze(): void {
    signal(this.pid, 'SIGSTOP');
    this.#frozen = [this.pid, ...childrenOf(this.pid)];
    for (const pid of this.#frozen) signal(pid, 'SIGSTOP');
  }

  thaw(): void {
    for (const pid of this.#frozen.splice(0)) signal(pid, 'SIGCONT');
  }

  /** Stops it gracefully. It stays down until `start`. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    await this.#starting?.catch(() => undefined);
    this.thaw();
    await this.#server?.stop();
  }

  /** Tries until it runs: an app may refuse to start while its database is away. */
  async #start(): Promise<void> {
    while (this.#isWanted) {
      try {
        const server = await this.begin();
        this.#server = server;
        this.#runs = true;
        server.onExit(({ code, signal: by }) => {
          if (this.#server !== server) return;
          this.#runs = false;
          if (!this.#isWanted) return;
          this.onDied(by ?? `code ${code ?? '?'}`);
          void delay(RESTART_PAUSE_MS).then(() => (this.#isWanted ? this.start() : undefined));
        });
        return;
      } catch (error) {
        this.onDied(`start: ${(error as Error).message.split('\n')[0] ?? ''}`);
        await delay(RESTART_PAUSE_MS);
      }
    }
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
