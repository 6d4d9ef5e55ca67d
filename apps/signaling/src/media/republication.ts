import type { MediaHost } from './media-host.js';
import type { Serial } from './serial.js';

/** Time for a client to republish tracks that the media server lost, in milliseconds. Then they are unpublished. */
const WITHIN_MS = 10_000;

/** Unpublishes tracks that a client does not republish in time, so that others do not wait for them in vain. */
export class Republication {
  readonly #host: MediaHost;
  readonly #writes: Serial;
  readonly #isOverdue: () => boolean;
  #timer: NodeJS.Timeout | undefined;

  /** @param isOverdue whether the tracks are still not published when the time is over */
  constructor(host: MediaHost, writes: Serial, isOverdue: () => boolean) {
    this.#host = host;
    this.#writes = writes;
    // A client without tracks has nothing to republish. Most viewers of a lost gateway have none.
    this.#isOverdue = () => isOverdue() && host.isConnected && host.storedTracks().length > 0;
  }

  expect(): void {
    this.cancel();
    this.#timer = setTimeout(() => void this.#unpublish(), WITHIN_MS);
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }

  async #unpublish(): Promise<void> {
    const { logger, sessionId } = this.#host;
    try {
      await this.#writes.run(async () => {
        if (this.#isOverdue()) await this.#host.unpublishAll();
      });
    } catch (error) {
      logger.warn('tracks not unpublished', { sessionId, error });
      if (this.#isOverdue()) this.expect();
    }
  }
}
