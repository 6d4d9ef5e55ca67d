import { asCallplaneError, type CallplaneError } from '../errors.js';
import type { Candidate, OfferMessage, SubscribedMessage, TrackReference } from '../protocol.generated.js';
import { Serial } from '../serial.js';
import type { Session } from '../signaling/session.js';
import { Peer } from './peer.js';
import { refreshVideo } from './refresh-video.js';

export type ReceivedTrack = TrackReference & {
  mediaStreamTrack: MediaStreamTrack;
  /** The level of the audio that is played at this moment, from 0 to 1. */
  audioLevel: () => number;
};

export interface SubscriberContext {
  session: Session;
  createConnection: () => RTCPeerConnection;
  random: () => number;
  /** Called with all received tracks after each change. */
  onTracks: (tracks: ReceivedTrack[]) => void;
  onError: (error: CallplaneError) => void;
}

/** The receiving connection. The gateway makes the offers, one at a time. */
export class Subscriber {
  readonly #context: SubscriberContext;
  readonly #serial = new Serial();
  #peer: Peer | undefined;
  /** Incremented by each reset, so that tasks of earlier connections drop out. */
  #generation = 0;
  #lastAnswered: number | undefined;
  /** What the media sections carry, as the gateway said last. */
  #carried: SubscribedMessage['tracks'] = [];
  #isClosed = false;

  constructor(context: SubscriberContext) {
    this.#context = context;
  }

  get connection(): RTCPeerConnection | undefined {
    return this.#peer?.connection;
  }

  /** `offerId` of the last offer that the present connection has answered. */
  get lastAnswered(): number | undefined {
    return this.#lastAnswered;
  }

  offer(message: OfferMessage): void {
    const generation = this.#generation;
    // Opened here and not in the task, so that candidates that arrive before the task runs find the peer.
    const peer = (this.#peer ??= this.#open());
    peer.descriptionArrived();
    void this.#serial.run(async () => {
      if (generation !== this.#generation) return;
      try {
        await this.#answer(peer, message);
      } catch (error) {
        if (generation === this.#generation) this.#context.onError(asCallplaneError(error));
      }
    });
  }

  /** Media sections carry these tracks from now on. */
  subscribed({ tracks }: SubscribedMessage): void {
    this.#carried = tracks;
    this.#apply();
  }

  addCandidate(candidate: Candidate): void {
    void this.#peer?.addCandidate(candidate);
  }

  /** Drops the connection after the media server has lost it; its next offer opens a new one. */
  reset(): void {
    this.#generation++;
    this.#peer?.close();
    this.#peer = undefined;
    this.#lastAnswered = undefined;
    this.#carried = [];
    if (!this.#isClosed) this.#context.onTracks([]);
  }

  /** Call this when the gateway can be reached again. */
  reachable(): void {
    this.#peer?.repair.reachable();
  }

  /** Call this when this machine has another network. */
  networkChanged(): void {
    this.#peer?.repair.networkChanged();
  }

  configure(configuration: RTCConfiguration): void {
    this.#peer?.connection.setConfiguration(configuration);
  }

  close(): void {
    this.#isClosed = true;
    this.reset();
  }

  async #answer(peer: Peer, { offerId, sdp }: OfferMessage): Promise<void> {
    const { connection } = peer;
    await peer.setRemote({ type: 'offer', sdp });
    const answer = await peer.setLocal(() => connection.createAnswer());
    const generation = this.#generation;
    if (peer === this.#peer) this.#lastAnswered = offerId;
    this.#context.session.request({ type: 'answer', offerId, sdp: answer }).catch((error: unknown) => {
      if (generation === this.#generation && !this.#isClosed) this.#context.onError(asCallplaneError(error));
    });
    peer.descriptionSent();
    this.#apply();
  }

  #apply(): void {
    const receivers = this.#peer?.connection.getTransceivers().map(({ mid, receiver }) => [mid, receiver] as const);
    const byMid = new Map(receivers);
    this.#context.onTracks(
      this.#carried.flatMap(({ participantId, trackId, mid }) => {
        const receiver = byMid.get(mid);
        if (receiver === undefined) return [];
        return [{ participantId, trackId, mediaStreamTrack: receiver.track, audioLevel: () => levelOf(receiver) }];
      }),
    );
  }

  /** The gateway answers with an offer. */
  async #restart(): Promise<void> {
    await this.#context.session.request({ type: 'restartIce' });
  }

  #open(): Peer {
    const { session, createConnection, random } = this.#context;
    return new Peer(createConnection(), {
      onCandidate: (candidate) => session.post({ type: 'candidate', target: 'subscriber', candidate }),
      random,
      isReachable: () => session.state === 'connected',
      restart: () => this.#restart(),
      recovered: () => refreshVideo(session, 'subscriber'),
      replace: () => {
        this.reset();
        session.request({ type: 'resetMedia', targets: ['subscriber'] }).catch(() => undefined);
      },
    });
  }
}

function levelOf(receiver: RTCRtpReceiver): number {
  return receiver.getSynchronizationSources()[0]?.audioLevel ?? 0;
}
