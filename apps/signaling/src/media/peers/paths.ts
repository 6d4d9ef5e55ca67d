import type { PeerTarget } from '@callplane/protocol';
import type { Publisher } from './publisher.js';
import type { Subscriber } from './subscriber.js';

/** The paths of a session's two peer connections through the network, which the client repairs. */
export class Paths {
  readonly #publisher: Pick<Publisher, 'handle'>;
  readonly #subscriber: Pick<Subscriber, 'restart' | 'refresh'>;

  constructor(publisher: Pick<Publisher, 'handle'>, subscriber: Pick<Subscriber, 'restart' | 'refresh'>) {
    this.#publisher = publisher;
    this.#subscriber = subscriber;
  }

  /**
   * Begins ICE anew on the receiving connection. On the sending one the client does, with an offer.
   * @throws RequestFailure `conflict` if the client has no receiving connection
   */
  restartIce(): void {
    this.#subscriber.restart();
  }

  /** Asks for key frames of what the client sends or receives: its path was interrupted, and works again. */
  refreshVideo(targets: readonly PeerTarget[]): void {
    // Browsers ask for them as well, up to 3 s later.
    if (targets.includes('publisher')) this.#publisher.handle?.requestKeyFrames().catch(() => undefined);
    if (targets.includes('subscriber')) this.#subscriber.refresh();
  }
}
