import type { PeerTarget } from '@callplane/protocol';
import type { Turns } from '@callplane/runtime';
import { storedTracks, type MediaDeps, type MediaOwner } from './context.js';

/** Time for a client to republish tracks that the media server lost, in milliseconds. Then they are unpublished. */
const REPUBLISH_WITHIN_MS = 10_000;

/** Peer connections that the media server has lost while the client does not know it yet. */
export class LostPeers {
  readonly #targets = new Set<PeerTarget>();
  readonly #send: (targets: PeerTarget[]) => boolean;
  /** Set while a `mediaReset` is delayed. */
  #timer: NodeJS.Timeout | undefined;

  /** @param send sends a `mediaReset`, or returns false if the client cannot get it now */
  constructor(send: (targets: PeerTarget[]) => boolean) {
    this.#send = send;
  }

  get size(): number {
    return this.#targets.size;
  }

  get isDelayed(): boolean {
    return this.#timer !== undefined;
  }

  add(target: PeerTarget): void {
    this.#targets.add(target);
  }

  /** The client has closed this peer connection, or has another one by now. */
  delete(target: PeerTarget): void {
    this.#targets.delete(target);
  }

  clear(): void {
    this.#targets.clear();
  }

  /** Sends a `mediaReset` now, or after a pause in milliseconds. */
  report(pauseMs = 0): void {
    if (pauseMs > 0) {
      this.#timer ??= setTimeout(() => this.report(), pauseMs);
      return;
    }
    this.cancel();
    if (this.#targets.size > 0 && this.#send([...this.#targets])) this.#targets.clear();
  }

  /** Stops a delayed report. The peer connections stay lost. */
  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

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
