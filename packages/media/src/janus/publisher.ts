import { MediaError, type PublishOptions } from '../types.js';
import { JanusHandle, type HandleSession } from './handle.js';
import { pluginData, textOf, type JanusMessage } from './messages.js';

/** A handle that has joined a room as a publisher. The caller publishes one offer at a time. */
export class MediaPublisher extends JanusHandle {
  readonly feedId: string;
  #isPublished: boolean;

  constructor(session: HandleSession, handleId: number, feedId: string, isPublished: boolean) {
    super(session, handleId);
    this.feedId = feedId;
    this.#isPublished = isPublished;
  }

  static async attach(session: HandleSession, roomId: string, feedId: string): Promise<MediaPublisher> {
    const publisher = new MediaPublisher(session, await session.attach(feedId), feedId, false);
    try {
      await publisher.change({ request: 'join', ptype: 'publisher', room: roomId, id: feedId });
    } catch (error) {
      void publisher.detach();
      throw error;
    }
    return publisher;
  }

  /** Offers all streams to publish from now on; also changes an earlier offer. Resolves to the SDP answer. */
  async publish(sdp: string, { audioActivePackets }: PublishOptions = {}): Promise<string> {
    // Janus takes `publish` for the first offer of a peer connection and `configure` for later ones.
    const request = this.#isPublished ? 'configure' : 'publish';
    const level = audioActivePackets === undefined ? {} : { audio_active_packets: audioActivePackets };
    const answer = await this.change({ request, ...level }, { type: 'offer', sdp });
    if (answer.sdp === undefined) throw new MediaError('invalid_sdp', 'Janus did not answer the offer');
    this.#isPublished = true;
    return answer.sdp;
  }

  /** Asks the client for a key frame of each video stream. */
  async requestKeyFrames(): Promise<void> {
    await this.change({ request: 'configure', keyframe: true });
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
}
