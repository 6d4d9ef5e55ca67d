import { EventEmitter } from 'node:events';
import { MediaError, type IceCandidate, type MediaPeerEvents } from '../media-node.js';
import type { HandleListener } from './janus-connection.js';
import type { JanusHandle } from './janus-handle.js';
import { objectOf, pluginData, textOf, type JanusMessage } from './janus-messages.js';

/** What publishers and subscribers have in common: candidates, the state of the peer connection, and the end. */
export abstract class JanusPeer extends EventEmitter<MediaPeerEvents> implements HandleListener {
  /** Set by attach(), before which nothing can be asked. */
  protected handle!: JanusHandle;
  #closed: MediaError | undefined;

  async addCandidate(candidate: IceCandidate | null): Promise<void> {
    this.mustBeOpen();
    await this.handle.trickle(candidate);
  }

  async detach(): Promise<void> {
    this.end(new MediaError('closed', 'The handle was given back'));
    await this.handle.detach();
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
    this.emit('closed', reason);
  }

  /** From now on every request is refused, without a notice. */
  protected end(error: MediaError): void {
    this.#closed ??= error;
  }

  protected mustBeOpen(): void {
    if (this.#closed !== undefined) throw this.#closed;
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
