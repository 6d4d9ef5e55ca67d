import type { PeerTarget } from '@callplane/protocol';

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
