import { MediaError, type MediaPublisher } from '../media-node.js';
import type { JanusConnection } from './janus-connection.js';
import { isJanusError, JANUS } from './janus-errors.js';
import { JanusHandle } from './janus-handle.js';
import { JanusPeer } from './janus-peer.js';

/** A handle that has joined a room as a publisher. */
export class JanusPublisher extends JanusPeer implements MediaPublisher {
  #published = false;
  /** Told of the hang-up that follows when nothing is published any more. */
  #onHangup: (() => void) | undefined;
  /** Requests that change what is published, one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly feedId: string,
    private readonly hangupWithinMs: number,
  ) {
    super();
  }

  static async attach(
    connection: JanusConnection,
    roomId: string,
    feedId: string,
    hangupWithinMs: number,
  ): Promise<JanusPublisher> {
    const publisher = new JanusPublisher(feedId, hangupWithinMs);
    publisher.handle = await JanusHandle.attach(connection, feedId, publisher);
    try {
      await publisher.opened().request({ request: 'join', ptype: 'publisher', room: roomId, id: feedId });
    } catch (error) {
      void publisher.detach();
      throw error;
    }
    return publisher;
  }

  publish(sdp: string): Promise<string> {
    return this.#inTurn(async () => {
      // Janus takes `publish` for the first offer of a peer connection and `configure` for those that change it.
      const request = this.#published ? 'configure' : 'publish';
      const answer = await this.change({ request }, { type: 'offer', sdp });
      if (answer.sdp === undefined) throw new MediaError('invalid_sdp', 'Janus did not answer the offer');
      this.#published = true;
      return answer.sdp;
    });
  }

  unpublish(): Promise<void> {
    return this.#inTurn(async () => {
      if (!this.#published) return;
      // Waited for, because Janus closes the peer connection a moment later, and a new one must not be taken for it.
      const hungUp = new Promise<void>((resolve) => {
        this.#onHangup = resolve;
      });
      try {
        await this.change({ request: 'unpublish' });
        this.#published = false;
        await withinMs(hungUp, this.hangupWithinMs);
      } catch (error) {
        if (!isJanusError(error, JANUS.notPublished)) throw error;
        this.#published = false;
      } finally {
        this.#onHangup = undefined;
      }
    });
  }

  protected override hungUp(reason: string): void {
    if (this.#onHangup === undefined) this.close(reason);
    else this.#onHangup();
  }

  protected override end(error: MediaError): void {
    super.end(error);
    this.#onHangup?.();
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(() => {
      this.opened();
      return work();
    });
    this.#turn = done.catch(() => undefined);
    return done;
  }
}

async function withinMs(promise: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, overdue]);
  clearTimeout(timer);
}
