import type { Logger } from '../logging/logger.js';

interface Closable {
  readonly name: string;
  close(): Promise<unknown>;
}

/**
 * Closes the resources of a process in reverse order on SIGTERM or SIGINT. Register each resource right after opening
 * it. The exit code is 0 if all resources close within the deadline, else 1.
 */
export class Lifecycle {
  readonly #logger: Logger;
  readonly #deadlineMs: number;
  readonly #opened: Closable[] = [];
  #closing: Promise<boolean> | undefined;

  constructor(logger: Logger, deadlineMs: number) {
    this.#logger = logger;
    this.#deadlineMs = deadlineMs;
  }

  /** True from the first signal on. The process is then not ready, so that the load balancer sends no new requests. */
  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  onClose(name: string, close: () => Promise<unknown>): void {
    this.#opened.push({ name, close });
  }

  /** Makes SIGTERM and SIGINT drain the process. Uncaught errors are logged, and drain it with exit code 1. */
  handleSignals(): void {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (this.isClosing && signal === 'SIGINT') process.exit(1);
        void this.close(signal).then((clean) => process.exit(clean ? 0 : 1));
      });
    }
    const fatal = (error: unknown): void => {
      this.#logger.error('process failed', { error });
      void this.close('error').then(() => process.exit(1));
    };
    process.on('uncaughtException', fatal);
    process.on('unhandledRejection', fatal);
  }

  /** Closes all resources, last opened first. Idempotent. Resolves to whether all closed in time and without error. */
  close(reason: string): Promise<boolean> {
    this.#closing ??= this.#closeAll(reason);
    return this.#closing;
  }

  async #closeAll(reason: string): Promise<boolean> {
    this.#logger.info('process drains', { reason, deadlineMs: this.#deadlineMs });
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), this.#deadlineMs);
    });
    let clean = true;
    for (const { name, close } of this.#opened.reverse()) {
      try {
        if ((await Promise.race([close(), deadline])) === 'late') {
          this.#logger.error('drain deadline passed', { name, deadlineMs: this.#deadlineMs });
          clean = false;
          break;
        }
      } catch (error) {
        this.#logger.error('close failed', { name, error });
        clean = false;
      }
    }
    clearTimeout(timer);
    this.#logger.info('process stopped', { clean });
    return clean;
  }
}
