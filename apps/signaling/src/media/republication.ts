import type { Turns } from '@callplane/runtime';
import { storedTracks, type MediaDeps, type MediaOwner } from './context.js';

/** Time for a client to republish tracks that the media server lost, in milliseconds. Then they are unpublished. */
const REPUBLISH_WITHIN_MS = 10_000;

/** Unpublishes tracks that a client does not republish in time, so that others do not wait for them in vain. */
export class Republication {
  readonly #deps: MediaDeps;
  readonly #session: MediaOwner;
  readonly #inTurn: Turns;
  readonly #isOverdue: () => boolean;
  #timer: NodeJS.Timeout | undefined;

  /** @param isOverdue whether the tracks are still not published when the time is over */
  constructor(deps: MediaDeps, session: MediaOwner, inTurn: Turns, isOverdue: () => boolean) {
    this.#deps = deps;
    this.#session = session;
    this.#inTurn = inTurn;
    // A client without tracks has nothing to republish. Most viewers of a lost gateway have none.
    this.#isOverdue = () => isOverdue() && session.isConnected && storedTracks(session).length > 0;
  }

  expect(): void {
    this.cancel();
    this.#timer = setTimeout(() => void this.#unpublish(), REPUBLISH_WITHIN_MS);
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }

  async #unpublish(): Promise<void> {
    try {
      await this.#inTurn(async () => {
        if (this.#isOverdue()) await this.#deps.writes.unpublishAll(this.#session);
      });
    } catch (error) {
      this.#deps.logger.warn('tracks not unpublished', { sessionId: this.#session.sessionId, error });
      if (this.#isOverdue()) this.expect();
    }
  }
}
