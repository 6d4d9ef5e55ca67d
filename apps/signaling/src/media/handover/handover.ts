import type { RoomPlacement, TrackState } from '@callplane/db';
import type { PeerTarget } from '@callplane/protocol';
import type { Turns } from '@callplane/runtime';
import type { LostPeers } from '../lost-peers.js';
import type { MediaHost, MediaPlace } from '../media-host.js';
import type { OwnSession } from '../own-session.js';
import type { Publisher } from '../peers/publisher.js';
import type { Subscriber } from '../peers/subscriber.js';
import { readMediaState, type ClaimOutcome, type MediaState, type PublisherState } from './media-state.js';
import { claimSession } from './take-over.js';

/** What a gateway knows about the media of a session that a client has resumed there. */
export interface ResumedMedia {
  /** As the previous gateway wrote it. */
  media: unknown;
  /** Number of the connection before this resumption. */
  previousConnection: number;
  clientHasPeers: boolean;
  /** The peer connections that the client has, if it said so. */
  clientPeers: readonly PeerTarget[] | undefined;
  /** The last offer that the client has answered; undefined if it did not say. */
  answeredOffer: number | undefined;
  /** The session's tracks in PostgreSQL. */
  tracks: readonly TrackState[];
}

/** The halves of a session's media, and what else a hand-over concerns. */
export interface HandoverParts {
  host: MediaHost;
  own: OwnSession;
  publisher: Publisher;
  subscriber: Subscriber;
  lost: LostPeers;
  /** Limits the requests that end lost sessions, over all sessions of this gateway. */
  endings: Turns;
}

/** Hands the media of a session over to another gateway, and takes it over from one. */
export class Handover {
  readonly #parts: HandoverParts;
  #takenOver = Promise.resolve();
  /** Whether the session came from another gateway, and its client has not been welcomed yet. */
  #isExpected = false;

  constructor(parts: HandoverParts) {
    this.#parts = parts;
  }

  /** Call this for a session of another gateway. Until `takeOver` the client's peer connections are lost. */
  expect(): void {
    this.#isExpected = true;
    this.#parts.lost.add('publisher');
    this.#parts.lost.add('subscriber');
  }

  /** Goes on with the media that another gateway has handed over, as far as possible. Never rejects. */
  takeOver(place: MediaPlace | null, resumed: ResumedMedia): Promise<void> {
    const { host } = this.#parts;
    this.#takenOver = this.#takeOver(place, resumed).then(
      (outcome) => {
        if (outcome !== null) host.claimed(outcome);
      },
      (error: unknown) => host.logger.error('media not taken over', { sessionId: host.sessionId, error }),
    );
    return this.#takenOver;
  }

  /** Resolves when no `takeOver` is in progress. */
  settled(): Promise<void> {
    return this.#takenOver;
  }

  /** The client is being welcomed: nothing is taken over any more. */
  finish(): void {
    this.#isExpected = false;
  }

  /** Where the session's media is, for a gateway that takes it over; null without media. */
  stateWith(publisher: PublisherState | null): MediaState | null {
    const { host, own, subscriber } = this.#parts;
    const opened = own.current;
    const placement: RoomPlacement | null = host.placement();
    if (opened === null || placement === null || opened.node.id !== placement.mediaNodeId) return null;
    return {
      connection: host.connectionNumber,
      nodeId: opened.node.id,
      generation: placement.mediaGeneration,
      janusSession: opened.session.id,
      publisher,
      subscriber: subscriber.handOver(),
      choices: subscriber.choices,
    };
  }

  /**
   * Ends the session on the media server that a lost connection has left there. Only if PostgreSQL says that this gateway
   * holds the participant session: after a pause of this process another one may have claimed it.
   */
  async endLost({ node }: MediaPlace): Promise<void> {
    const { host, own, endings } = this.#parts;
    const lostSession = own.takeLost(node);
    if (lostSession === null) return;
    try {
      await endings(async () => {
        if (await host.writeMedia()) await node.destroySession(lostSession);
      });
    } catch (error) {
      host.logger.info('lost media session not ended', { sessionId: host.sessionId, error });
    }
  }

  #mayTakeOver(): boolean {
    return this.#isExpected;
  }

  /** @returns null if there is nothing to take over */
  async #takeOver(place: MediaPlace | null, resumed: ResumedMedia): Promise<ClaimOutcome | null> {
    const state = readMediaState(resumed.media);
    // The client may have resumed the session once more, and been welcomed.
    if (state === null || !this.#mayTakeOver()) return null;
    if (place === null) return 'lost';
    const session = await claimSession(this.#parts.host, state, { ...resumed, place });
    if (typeof session === 'string') return session;
    if (!this.#mayTakeOver()) {
      await session.destroy();
      return 'outdated';
    }
    const { own, publisher, subscriber, lost } = this.#parts;
    own.adopt(place.node, session);
    if (!session.isOpen) return 'lost';
    const { publisher: sending, subscriber: receiving } = state;
    const isSending = sending !== null && publisher.claim(place.node, session, sending, resumed.tracks);
    const isReceiving = receiving !== null && subscriber.claim(place.node, session, receiving, resumed.answeredOffer);
    subscriber.restore(state.choices);
    if (!isSending && sending !== null) void session.detach(sending.handle);
    if (!isReceiving && receiving !== null) void session.detach(receiving.handle);
    // A peer connection that the client does not have is not lost, unless there are tracks that nothing sends.
    const has = (target: PeerTarget) => resumed.clientPeers?.includes(target) !== false;
    if (isSending || (!has('publisher') && resumed.tracks.length === 0)) lost.delete('publisher');
    if (isReceiving || !has('subscriber')) lost.delete('subscriber');
    if (!isSending && !isReceiving && lost.size > 0) return 'outdated';
    return isSending === (sending !== null) && isReceiving === (receiving !== null) ? 'continued' : 'partly';
  }
}
