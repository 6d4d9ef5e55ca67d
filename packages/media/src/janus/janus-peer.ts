import { EventEmitter } from 'node:events';
import { MediaError, type IceCandidate, type MediaPeerEvents } from '../media-node.js';
import type { HandleListener } from './janus-connection.js';
import type { JanusHandle, PluginAnswer, PluginRequest } from './janus-handle.js';
import { objectOf, pluginData, textOf, type JanusMessage, type SessionDescription } from './janus-messages.js';

/** What publishers and subscribers have in common: candidates, the state of the peer connection, and the end. */
export abstract class JanusPeer extends EventEmitter<MediaPeerEvents> implements HandleListener {
  /** Set by attach(). */
  protected handle: JanusHandle | undefined;
  #closed: MediaError | undefined;

  async addCandidate(candidate: IceCandidate | null): Promise<void> {
    await this.opened().trickle(candidate);
  }

  async detach(): Promise<void> {
    this.end(new MediaError('closed', 'The handle was given back'));
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
      case 'hangup':
        this.hungUp(textOf(message.body['reason']));
        break;
      case 'detached':
        this.close('detached');
        break;
      case 'event': {
        const { videoroom, leaving, reason } = pluginData(message);
        if (videoroom === 'destroyed') this.close('room destroyed');
        // Of others it says their id.
        else if (leaving === 'ok') this.close(textOf(reason) || 'left');
        break;
      }
      default:
    }
  }

  onLost(error: MediaError): void {
    this.close('media server away', error);
  }

  /** The peer connection is over. */
  protected hungUp(reason: string): void {
    this.close(reason);
  }

  protected close(reason: string, error = new MediaError('closed', `The peer connection has ended: ${reason}`)): void {
    if (this.#closed !== undefined) return;
    this.end(error);
    // Also what Janus itself has ended keeps its handle, and a publisher its place in the room, until they are given back.
    void this.handle?.detach();
    this.emit('closed', reason);
  }

  /** From now on every request is refused, without a notice. */
  protected end(error: MediaError): void {
    this.#closed ??= error;
  }

  /** The handle; throws why it can no longer be used. */
  protected opened(): JanusHandle {
    if (this.#closed !== undefined) throw this.#closed;
    if (this.handle === undefined) throw new MediaError('closed', 'There is no handle yet');
    return this.handle;
  }

  /**
   * A request that changes the peer connection. Without an answer in time nobody knows which state Janus is in: the
   * peer ends, and its owner attaches a new one.
   */
  protected async change(body: PluginRequest, jsep?: SessionDescription): Promise<PluginAnswer> {
    try {
      return await this.opened().request(body, jsep);
    } catch (error) {
      if (error instanceof MediaError && error.code === 'timeout') this.close('no answer');
      throw error;
    }
  }
}

/** Null for the end of candidates, undefined for what is none. */
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
