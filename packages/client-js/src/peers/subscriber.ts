import { asCallplaneError, type CallplaneError } from '../errors.js';
import type { OfferMessage, SubscribedMessage, TrackReference } from '../protocol.generated.js';
import { Serial } from '../wait.js';
import { Peer, type PeersContext } from './peer.js';

export type ReceivedTrack = TrackReference & {
  mediaStreamTrack: MediaStreamTrack;
  /** The level of the audio that is played at this moment, from 0 to 1. */
  audioLevel: () => number;
};

export interface SubscriberContext extends PeersContext {
  onTracks: (tracks: ReceivedTrack[]) => void;
  onError: (error: CallplaneError) => void;
}

/** The receiving connection. The gateway makes the offers, one at a time. */
export class Subscriber {
  peer: Peer | undefined;
  /** `offerId` of the last offer that the present connection has answered. */
  lastAnswered: number | undefined;
  readonly #serial = new Serial();
  #carried: SubscribedMessage['tracks'] = [];

  constructor(private readonly context: SubscriberContext) {}

  offer(message: OfferMessage): void {
    // Opened here and not in the task, so that a reset before the task drops the offer.
    const peer = (this.peer ??= this.#open());
    void this.#serial.run(async () => {
      try {
        if (peer === this.peer) await this.#answer(peer, message);
      } catch (error) {
        if (peer === this.peer) this.context.onError(asCallplaneError(error));
      }
    });
  }

  subscribed({ tracks }: SubscribedMessage): void {
    this.#carried = tracks;
    this.#apply();
  }

  /** Drops the connection after the media server has lost it; its next offer opens a new one. */
  reset(): void {
    this.peer?.close();
    this.peer = undefined;
    this.lastAnswered = undefined;
    this.#carried = [];
    this.context.encryption()?.receive([]);
    this.context.onTracks([]);
  }

  async #answer(peer: Peer, { offerId, sdp }: OfferMessage): Promise<void> {
    await peer.ready();
    await peer.setRemote({ type: 'offer', sdp });
    const answer = await peer.setLocal(() => peer.connection.createAnswer());
    if (peer !== this.peer) return;
    this.lastAnswered = offerId;
    this.context.session.request({ type: 'answer', offerId, sdp: answer }).catch((error: unknown) => {
      if (peer === this.peer) this.context.onError(asCallplaneError(error));
    });
    this.#apply();
  }

  #apply(): void {
    const receivers = this.peer?.connection.getTransceivers().map(({ mid, receiver }) => [mid, receiver] as const);
    const byMid = new Map(receivers);
    this.context.encryption()?.receive(
      this.#carried.flatMap(({ mid, ...track }) => {
        const receiver = byMid.get(mid);
        return receiver === undefined ? [] : [{ ...track, receiver }];
      }),
    );
    this.context.onTracks(
      this.#carried.flatMap(({ participantId, trackId, mid }) => {
        const receiver = byMid.get(mid);
        if (receiver === undefined) return [];
        const audioLevel = () => receiver.getSynchronizationSources()[0]?.audioLevel ?? 0;
        return [{ participantId, trackId, mediaStreamTrack: receiver.track, audioLevel }];
      }),
    );
  }

  #open(): Peer {
    const peer = new Peer('subscriber', this.context, {
      // An offer follows.
      restart: () => this.context.session.request({ type: 'restartIce' }),
      replace: () => this.reset(),
    });
    const encryption = this.context.encryption();
    // The event comes before the answer, and so before any frame.
    if (encryption !== undefined)
      peer.connection.addEventListener('track', ({ receiver }) => encryption.protect(receiver));
    return peer;
  }
}
