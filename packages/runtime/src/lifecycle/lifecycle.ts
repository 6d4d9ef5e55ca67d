import type { Logger } from '../logging/logger.js';

interface Closable {
  readonly name: string;
  close(): Promise<unknown>;
}

/**
 * What a process has opened, closed in reverse order on SIGTERM or SIGINT: register a thing right after it was opened.
 * Exit code 0 when everything closed within the deadline, else 1.
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

  /** True from the first signal on: readiness answers no, so that the load balancer looks elsewhere. */
  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  onClose(name: string, close: () => Promise<unknown>): void {
    this.#opened.push({ name, close });
  }

  /** From now on SIGTERM and SIGINT drain the process; what nobody caught ends it with a log line. */
  handleSignals(): void {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (this.isClosing && signal === 'SIGINT') process.exit(1);
        void this.close(signal).then((clean) => process.exit(clean ? 0 : 1));
      });
    }
    const fatal = (error: unknown): void => {
      this.#logger.error('process fails', { error });
      void this.close('error').then(() => process.exit(1));
    };
    process.on('uncaughtException', fatal);
    process.on('unhandledRejection', fatal);
  }

  /** Closes everything, last opened first. Idempotent. Resolves to whether all of it closed in time. */
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
    this.#logger.info('process stops', { clean });
    return clean;
  }
}
