import { asCallplaneError, type CallplaneError } from '../errors.js';
import type { Candidate, OfferMessage, TrackReference } from '../protocol.generated.js';
import { Serial } from '../serial.js';
import type { Session } from '../signaling/session.js';
import { Peer } from './peer.js';

export type ReceivedTrack = TrackReference & { mediaStreamTrack: MediaStreamTrack };

export interface SubscriberContext {
  session: Session;
  createConnection: () => RTCPeerConnection;
  /** All that is received from now on. */
  onTracks: (tracks: ReceivedTrack[]) => void;
  onError: (error: CallplaneError) => void;
}

/** The connection that receives. The gateway offers, one offer at a time. */
export class Subscriber {
  readonly #context: SubscriberContext;
  readonly #serial = new Serial();
  #peer: Peer | undefined;
  /** Counts connections: what was meant for an earlier one is dropped. */
  #generation = 0;
  #isClosed = false;

  constructor(context: SubscriberContext) {
    this.#context = context;
  }

  get connection(): RTCPeerConnection | undefined {
    return this.#peer?.connection;
  }

  offer(message: OfferMessage): void {
    const generation = this.#generation;
    // Here and not in the task, so that candidates that come meanwhile find it.
    const peer = (this.#peer ??= this.#open());
    void this.#serial.run(async () => {
      if (generation !== this.#generation) return;
      try {
        await this.#answer(peer, message);
      } catch (error) {
        if (generation === this.#generation) this.#context.onError(asCallplaneError(error));
      }
    });
  }

  addCandidate(candidate: Candidate): void {
    void this.#peer?.addCandidate(candidate);
  }

  /** The other side has lost this connection; its next offer makes a new one. */
  reset(): void {
    this.#generation++;
    this.#peer?.close();
    this.#peer = undefined;
    if (!this.#isClosed) this.#context.onTracks([]);
  }

  /** Called in trouble, and when the gateway can be reached again: has the gateway begin anew. */
  mend(): void {
    const { session } = this.#context;
    if (session.state !== 'connected' || this.#peer?.isTroubled !== true) return;
    this.reset();
    session.request({ type: 'resetMedia', targets: ['subscriber'] }).catch(() => undefined);
  }

  configure(configuration: RTCConfiguration): void {
    this.#peer?.connection.setConfiguration(configuration);
  }

  close(): void {
    this.#isClosed = true;
    this.reset();
  }

  async #answer(peer: Peer, { offerId, sdp, tracks }: OfferMessage): Promise<void> {
    const { connection } = peer;
    await peer.setRemote({ type: 'offer', sdp });
    await connection.setLocalDescription(await connection.createAnswer());
    const generation = this.#generation;
    this.#context.session
      .request({ type: 'answer', offerId, sdp: connection.localDescription?.sdp ?? '' })
      .catch((error: unknown) => {
        if (generation === this.#generation && !this.#isClosed) this.#context.onError(asCallplaneError(error));
      });
    peer.descriptionSent();
    const byMid = new Map(connection.getTransceivers().map((one) => [one.mid, one.receiver.track]));
    this.#context.onTracks(
      tracks.flatMap(({ participantId, trackId, mid }) => {
        const mediaStreamTrack = byMid.get(mid);
        return mediaStreamTrack === undefined ? [] : [{ participantId, trackId, mediaStreamTrack }];
      }),
    );
  }

  #open(): Peer {
    const { session, createConnection } = this.#context;
    return new Peer(createConnection(), {
      onCandidate: (candidate) => session.post({ type: 'candidate', target: 'subscriber', candidate }),
      onTrouble: () => this.mend(),
    });
  }
}
