import type { Logger } from '../logging/logger.js';

interface Closable {
  readonly name: string;
  close(): Promise<unknown>;
}

/**
 * The phases of a process at its end:
 *
 * | phase      | ready | takes new work | until                                                  |
 * | ---------- | ----- | -------------- | ------------------------------------------------------ |
 * | `running`  | yes   | yes            | a signal                                               |
 * | `unready`  | no    | yes            | the drain delay is over, or the process fails          |
 * | `draining` | no    | no             | every resource has closed, or the deadline has passed  |
 * | `stopped`  | no    | no             |                                                        |
 */
export type Phase = 'running' | 'unready' | 'draining' | 'stopped';

export interface StopTimes {
  /**
   * How long the process stays `unready` before it drains. A load balancer that learns late that an instance is not
   * ready still sends it requests.
   */
  delayMs: number;
  /** How long the resources may take to close, from the end of the delay. */
  deadlineMs: number;
}

/**
 * Closes the resources of a process in reverse order on SIGTERM or SIGINT. Register each resource right after opening
 * it. The exit code is 0 if all resources close within the deadline, else 1.
 */
export class Lifecycle {
  readonly #opened: Closable[] = [];
  #phase: Phase = 'running';
  #closing: Promise<boolean> | undefined;
  #endDelay: (() => void) | undefined;

  constructor(
    private readonly logger: Logger,
    private readonly times: StopTimes,
  ) {}

  get phase(): Phase {
    return this.#phase;
  }

  /** True from the first signal on. The process is then not ready, so that the load balancer sends no new requests. */
  get isClosing(): boolean {
    return this.#phase !== 'running';
  }

  /** True from the end of the drain delay on. The process then takes no new work. */
  get isDraining(): boolean {
    return this.#phase === 'draining' || this.#phase === 'stopped';
  }

  onClose(name: string, close: () => Promise<unknown>): void {
    this.#opened.push({ name, close });
  }

  /**
   * Makes SIGTERM and SIGINT drain the process. Uncaught errors are logged, and drain it with exit code 1, except replies
   * of Redis: a library may send a command of its own and not expect a refusal, as ioredis does after a reconnection.
   */
  handleSignals(): void {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (this.isClosing && signal === 'SIGINT') process.exit(1);
        void this.close(signal).then((clean) => process.exit(clean ? 0 : 1));
      });
    }
    const fatal = (error: unknown): void => {
      this.logger.error('process failed', { error });
      void this.fail().then(() => process.exit(1));
    };
    process.on('uncaughtException', fatal);
    process.on('unhandledRejection', (error) => {
      if (error instanceof Error && error.name === 'ReplyError') this.logger.error('redis reply ignored', { error });
      else fatal(error);
    });
  }

  /**
   * Waits for the drain delay, then closes all resources, last opened first. Idempotent. Resolves to whether all closed
   * in time and without error.
   */
  close(reason: string): Promise<boolean> {
    this.#closing ??=
      this.times.delayMs === 0 ? this.#closeAll(reason) : this.#delay(reason).then(() => this.#closeAll(reason));
    return this.#closing;
  }

  /** As `close()`, but without the drain delay, or its rest: a process that has failed serves no requests. */
  fail(): Promise<boolean> {
    this.#endDelay?.();
    this.#closing ??= this.#closeAll('error');
    return this.#closing;
  }

  async #delay(reason: string): Promise<void> {
    const { delayMs } = this.times;
    this.#phase = 'unready';
    this.logger.info('process becomes unready', { reason, delayMs });
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, delayMs);
      this.#endDelay = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #closeAll(reason: string): Promise<boolean> {
    this.#phase = 'draining';
    const { deadlineMs } = this.times;
    this.logger.info('process drains', { reason, deadlineMs });
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), deadlineMs);
    });
    let clean = true;
    for (const { name, close } of this.#opened.reverse()) {
      try {
        if ((await Promise.race([close(), deadline])) === 'late') {
          this.logger.error('drain deadline passed', { name, deadlineMs });
          clean = false;
          break;
        }
      } catch (error) {
        this.logger.error('close failed', { name, error });
        clean = false;
      }
    }
    clearTimeout(timer);
    this.#phase = 'stopped';
    this.logger.info('process stopped', { clean });
    return clean;
  }
}
