import { MediaError, type MediaPublisher, type PublishOptions } from '../media-node.js';
import { isJanusError, JANUS } from './janus-errors.js';
import { JanusHandle } from './janus-handle.js';
import { pluginData, textOf, type JanusMessage } from './janus-messages.js';
import { JanusPeer } from './janus-peer.js';
import type { JanusSession } from './janus-session.js';

/** A handle that has joined a room as a publisher. */
export class JanusPublisher extends JanusPeer implements MediaPublisher {
  #published = false;
  /** Called on the hang-up that follows `unpublish`. */
  #onHangup: (() => void) | undefined;
  /** Runs the requests that change the published streams one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly feedId: string,
    private readonly hangupWithinMs: number,
  ) {
    super();
  }

  static async attach(
    session: JanusSession,
    roomId: string,
    feedId: string,
    hangupWithinMs: number,
  ): Promise<JanusPublisher> {
    const publisher = new JanusPublisher(feedId, hangupWithinMs);
    publisher.handle = await JanusHandle.attach(session, feedId, publisher);
    try {
      await publisher.opened().requestInOrder({ request: 'join', ptype: 'publisher', room: roomId, id: feedId });
    } catch (error) {
      void publisher.detach();
      throw error;
    }
    return publisher;
  }

  /** Takes over a publisher that has published on a claimed session. */
  static adopt(session: JanusSession, handleId: number, feedId: string, hangupWithinMs: number): JanusPublisher {
    const publisher = new JanusPublisher(feedId, hangupWithinMs);
    publisher.handle = JanusHandle.adopt(session, handleId, publisher);
    publisher.#published = true;
    return publisher;
  }

  publish(sdp: string, { audioActivePackets }: PublishOptions = {}): Promise<string> {
    return this.#inTurn(async () => {
      // Janus takes `publish` for the first offer of a peer connection and `configure` for later ones.
      const request = this.#published ? 'configure' : 'publish';
      const level = audioActivePackets === undefined ? {} : { audio_active_packets: audioActivePackets };
      const answer = await this.change({ request, ...level }, { type: 'offer', sdp });
      if (answer.sdp === undefined) throw new MediaError('invalid_sdp', 'Janus did not answer the offer');
      this.#published = true;
      return answer.sdp;
    });
  }

  async requestKeyFrames(): Promise<void> {
    await this.opened().requestInOrder({ request: 'configure', keyframe: true });
  }

  unpublish(): Promise<void> {
    return this.#inTurn(async () => {
      if (!this.#published) return;
      // Janus closes the peer connection a moment after `unpublish`. Without this wait, that hang-up would end the next
      // one.
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

  override onNotice(message: JanusMessage): void {
    // Janus does not report the end of speech if the packets end in the middle of it.
    const { janus, body } = message;
    if (janus === 'media' && body['type'] === 'audio' && body['receiving'] === false) {
      this.emit('talking', textOf(body['mid']), null);
    }
    const { videoroom, id, mid, 'audio-level-dBov-avg': level } = pluginData(message);
    if (videoroom !== 'talking' && videoroom !== 'stopped-talking') super.onNotice(message);
    // Janus notifies every publisher of the room.
    else if (id === this.feedId) this.emit('talking', textOf(mid), videoroom === 'talking' ? Number(level) : null);
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
