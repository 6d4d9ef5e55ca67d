import { EventEmitter } from 'node:events';
import { MediaError, type IceCandidate, type MediaPeerEvents } from '../media-node.js';
import type { JanusHandle, PluginAnswer, PluginRequest } from './janus-handle.js';
import { objectOf, pluginData, textOf, type JanusMessage, type SessionDescription } from './janus-messages.js';
import type { HandleListener } from './janus-session.js';

/** The shared part of publishers and subscribers: candidates, the state of the peer connection, and its end. */
export abstract class JanusPeer extends EventEmitter<MediaPeerEvents> implements HandleListener {
  /** Set by attach(). */
  protected handle: JanusHandle | undefined;
  #closed: MediaError | undefined;
  #isUnanswered = false;

  get handleId(): number {
    if (this.handle === undefined) throw new MediaError('closed', 'The handle is not attached yet');
    return this.handle.id;
  }

  get isUnanswered(): boolean {
    return this.#isUnanswered;
  }

  async addCandidate(candidate: IceCandidate | null): Promise<void> {
    await this.opened().trickle(candidate);
  }

  async detach(): Promise<void> {
    this.end(new MediaError('closed', 'The handle was detached'));
    await this.handle?.detach();
  }

  onNotice(message: JanusMessage): void {
    switch (message.janus) {
      case 'trickle': {
        const candidate = candidateIn(message.body['candidate']);
        if (candidate !== undefined) this.emit('candidate', candidate);
        break;
      }
      case 'webrtcup':
        this.emit('connected');
        break;
      case 'media':
        this.emit('receiving', textOf(message.body['mid']), message.body['receiving'] === true);
        break;
      case 'slowlink':
        this.emit('slowLink', Number(message.body['lost']) || 0);
        break;
      case 'hangup':
        this.hungUp(textOf(message.body['reason']));
        break;
      case 'detached':
        this.close('detached');
        break;
      case 'event': {
        if (message.transaction !== undefined) this.emit('disturbed');
        const { videoroom, leaving, reason } = pluginData(message);
        if (videoroom === 'destroyed') this.close('room destroyed');
        // For other participants `leaving` holds their id.
        else if (leaving === 'ok') this.close(textOf(reason) || 'left');
        break;
      }
      default:
    }
  }

  onLost(error: MediaError): void {
    this.close('media server unavailable', error);
  }

  /** Handles the hang-up of the peer connection. */
  protected hungUp(reason: string): void {
    this.close(reason);
  }

  protected close(reason: string, error = new MediaError('closed', `The peer connection has ended: ${reason}`)): void {
    if (this.#closed !== undefined) return;
    this.end(error);
    // Janus keeps the handle, and a publisher's place in the room, until the handle is detached, even if Janus itself
    // ended it.
    if (!this.#isUnanswered) void this.handle?.detach();
    this.emit('closed', reason);
  }

  /** Rejects every later request with `error`, without emitting `closed`. */
  protected end(error: MediaError): void {
    this.#closed ??= error;
    this.handle?.end(this.#closed);
  }

  /**
   * Returns the handle.
   * @throws MediaError the reason why the handle is not usable.
   */
  protected opened(): JanusHandle {
    if (this.#closed !== undefined) throw this.#closed;
    if (this.handle === undefined) throw new MediaError('closed', 'The handle is not attached yet');
    return this.handle;
  }

  /**
   * Sends a request that changes the peer connection. Without an answer in time, the state of the peer connection in
   * Janus is unknown, or another process holds the session. The peer then ends, and its owner decides about the handle.
   */
  protected async change(body: PluginRequest, jsep?: SessionDescription): Promise<PluginAnswer> {
    return this.opened().requestInOrder(body, jsep, (error) => {
      if (!(error instanceof MediaError) || error.code !== 'timeout') return;
      if (this.#closed === undefined) this.#isUnanswered = true;
      this.close('no answer');
    });
  }
}

/** Null for the end of candidates, undefined if `value` is not a candidate. */
function candidateIn(value: unknown): IceCandidate | null | undefined {
  const { candidate, completed, sdpMid, sdpMLineIndex } = objectOf(value);
  if (completed === true) return null;
  if (typeof candidate !== 'string') return undefined;
  return {
    candidate,
    ...(typeof sdpMid === 'string' ? { sdpMid } : {}),
    ...(typeof sdpMLineIndex === 'number' ? { sdpMLineIndex } : {}),
  };
}
