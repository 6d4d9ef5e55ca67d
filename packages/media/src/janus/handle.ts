import { EventEmitter } from 'node:events';
import { MediaError, type IceCandidate, type MediaPeerEvents } from '../types.js';
import type { JanusRequest, RequestOptions } from './connection.js';
import { pluginData, sdpIn, textOf, type JanusMessage, type SessionDescription } from './messages.js';

export interface PluginAnswer {
  data: Readonly<Record<string, unknown>>;
  sdp: string | undefined;
}

type PluginRequest = { request: string } & Record<string, unknown>;

/** The session of a handle, as the handle uses it. */
export interface HandleSession {
  /**
   * Creates a handle of the VideoRoom plug-in.
   * @param label becomes Janus' `opaque_id`
   * @returns the handle's id
   */
  attach(label: string): Promise<number>;
  /**
   * Sends a request and resolves to its answer. Rejects with a JanusError, or a MediaError `timeout` or `unavailable`.
   */
  request(message: JanusRequest, options?: RequestOptions): Promise<JanusMessage>;
  /** Gives the handle its notices from now on, and the end of the session, which also ends the handle. */
  listen(handle: JanusHandle): void;
  unlisten(handleId: number): void;
}

/** A handle of the VideoRoom plug-in: one user of the plug-in, with at most one peer connection. */
export class JanusHandle extends EventEmitter<MediaPeerEvents> {
  #detached: Promise<void> | undefined;
  /** Resolves once Janus has acknowledged the last change. */
  #acknowledged: Promise<void> = Promise.resolve();
  /** Why this process can use the handle no more. */
  #over: MediaError | undefined;

  constructor(
    protected readonly session: HandleSession,
    readonly handleId: number,
  ) {
    super();
    session.listen(this);
  }

  /** Janus may carry out requests that are under way together in any order: each one has a thread of its own. */
  async request(body: PluginRequest, deadlineMs?: number): Promise<PluginAnswer> {
    if (this.#over !== undefined) throw this.#over;
    return this.#send(body, undefined, { deadlineMs });
  }

  /**
   * Sends a request that changes the peer connection. Janus carries out these requests one after another, in the order of
   * the calls: each request leaves when Janus has acknowledged the one before it, which has its place in the queue of the
   * plug-in then. After the end of the handle none leaves.
   * Without an answer in time, the state of the peer connection in Janus is unknown: the handle ends.
   */
  async change(body: PluginRequest, jsep?: SessionDescription): Promise<PluginAnswer> {
    const before = this.#acknowledged;
    let onAcknowledged: () => void = () => undefined;
    this.#acknowledged = new Promise((resolve) => {
      onAcknowledged = resolve;
    });
    await before;
    try {
      if (this.#over !== undefined) throw this.#over;
      return await this.#send(body, jsep, { onAcknowledged });
    } catch (error) {
      if (error instanceof MediaError && error.code === 'timeout') this.#close('no answer');
      throw error;
    } finally {
      // After a failure, too, the next request leaves.
      onAcknowledged();
    }
  }

  /** Adds a remote candidate; null marks the end of candidates. */
  async addCandidate(candidate: IceCandidate | null): Promise<void> {
    if (this.#over !== undefined) throw this.#over;
    await this.session.request(trickle(this.handleId, [candidate]));
  }

  /**
   * Frees the handle and closes its peer connection, without `closed`. Idempotent, and never rejects: Janus frees a handle
   * that cannot be detached when the session ends.
   */
  detach(): Promise<void> {
    this.#over ??= new MediaError('closed', 'The handle was detached');
    this.#detached ??= (async () => {
      this.session.unlisten(this.handleId);
      try {
        await this.session.request({ janus: 'detach', handle_id: this.handleId });
      } catch {
        // The handle or the connection is already gone.
      }
    })();
    return this.#detached;
  }

  onNotice(message: JanusMessage): void {
    switch (message.janus) {
      case 'webrtcup':
        this.emit('connected');
        break;
      case 'hangup':
        this.#close(textOf(message.body['reason']));
        break;
      case 'detached':
        this.#close('detached');
        break;
      case 'event': {
        if (message.transaction !== undefined) this.emit('disturbed');
        const { videoroom, leaving, reason } = pluginData(message);
        if (videoroom === 'destroyed') this.#close('room destroyed');
        // For other participants `leaving` holds their id.
        else if (leaving === 'ok') this.#close(textOf(reason) || 'left');
        break;
      }
      default:
    }
  }

  onLost(error: MediaError): void {
    this.#close('media server unavailable', error);
  }

  #close(reason: string, error = new MediaError('closed', `The peer connection has ended: ${reason}`)): void {
    if (this.#over !== undefined) return;
    this.#over = error;
    // Janus keeps the handle, and a publisher's place in the room, until the handle is detached, even if Janus itself
    // ended it.
    void this.detach();
    this.emit('closed', reason);
  }

  async #send(
    body: PluginRequest,
    jsep: SessionDescription | undefined,
    options: RequestOptions,
  ): Promise<PluginAnswer> {
    const message = { janus: 'message', handle_id: this.handleId, body, jsep };
    const answer = await this.session.request(message, { ...options, awaitsEvent: true, name: body.request });
    return { data: pluginData(answer), sdp: sdpIn(answer) };
  }
}

/** @param candidates null marks their end */
export function trickle(handleId: number, candidates: readonly (IceCandidate | null)[]): JanusRequest {
  return { janus: 'trickle', handle_id: handleId, candidates: candidates.map((one) => one ?? { completed: true }) };
}

/** A handle that has joined a room as a publisher. The caller publishes one offer at a time. */
export class MediaPublisher extends JanusHandle {
  constructor(
    session: HandleSession,
    handleId: number,
    readonly feedId: string,
    private isPublished: boolean,
  ) {
    super(session, handleId);
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

  /**
   * Offers all streams to publish from now on; also changes an earlier offer.
   * @param audioActivePackets number of audio packets (20 ms each) whose average level decides whether a track carries
   *   speech; the room has a default
   * @returns the SDP answer
   */
  async publish(sdp: string, audioActivePackets?: number): Promise<string> {
    // Janus takes `publish` for the first offer of a peer connection and `configure` for later ones.
    const request = this.isPublished ? 'configure' : 'publish';
    const answer = await this.change({ request, audio_active_packets: audioActivePackets }, { type: 'offer', sdp });
    if (answer.sdp === undefined) throw new MediaError('invalid_sdp', 'Janus did not answer the offer');
    this.isPublished = true;
    return answer.sdp;
  }

  /** Asks the client for a key frame of each video stream. */
  async requestKeyFrames(): Promise<void> {
    await this.change({ request: 'configure', keyframe: true });
  }

  override onNotice(message: JanusMessage): void {
    const { janus, body } = message;
    if (janus === 'media') {
      this.emit('receiving', textOf(body['mid']), Number(body['substream'] ?? 0), body['receiving'] === true);
    }
    // Janus does not report the end of speech if the packets end in the middle of it.
    if (janus === 'media' && body['type'] === 'audio' && body['receiving'] === false) {
      this.emit('talking', textOf(body['mid']), null);
    }
    const { videoroom, id, mid, 'audio-level-dBov-avg': level } = pluginData(message);
    if (videoroom !== 'talking' && videoroom !== 'stopped-talking') super.onNotice(message);
    // Janus notifies every publisher of the room.
    else if (id === this.feedId) this.emit('talking', textOf(mid), videoroom === 'talking' ? Number(level) : null);
  }
}
