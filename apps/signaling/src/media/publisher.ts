import type { TrackState } from '@callplane/db';
import { MediaError, type MediaNode, type MediaPublisher, type MediaSession } from '@callplane/media';
import type { ClientMessages } from '@callplane/protocol';
import pLimit from 'p-limit';
import { feedIdAt } from '@callplane/core';
import { RequestFailure } from '../clients/client.js';
import { isStillLive, type MediaDeps, type MediaOwner, type PublisherRecord, type WhipRecord } from './media-writes.js';
import { mediaUnavailable, toFailure, type MediaPlace } from './places.js';
import { Feed, keepMutes, type FeedListener, type FeedPhase } from './feed.js';
import { withoutRetransmissions } from './retransmissions.js';
import { withEncryptableCodecs } from './encryptable-codecs.js';
import { noteExtensions } from './header-extensions.js';
import { checkOffer, type CheckedOffer } from './sdp-gate.js';

const ANNOUNCE_AGAIN_MS = 1000;
/** Half a second of audio, and in rooms with many publishers longer. */
const AUDIO_ACTIVE_PACKETS_MIN = 25;
const AUDIO_ACTIVE_PACKETS_MAX = 250;
/** Publishers up to which half a second is enough. */
const TALKING_PUBLISHERS = 100;

/**
 * The publishing half of a session's media: the peer connection on which the client sends. It has one feed or none. Work
 * that waits for the media server or the database compares the feed afterwards, and ends if it is another one by then.
 */
export class Publisher implements FeedListener {
  /** Runs one write of the session's tracks at a time, so that a slow publish cannot commit after a later unpublish. */
  readonly #serially = pLimit(1);
  #feed: Feed | null = null;
  #isClosed = false;
  /** Runs one publish request at a time. A request of an earlier client may still wait for the media server. */
  readonly #publications = pLimit(1);
  #attachments = 0;

  /** @param onLost called when the media server has lost the client's peer connection */
  constructor(
    private readonly deps: MediaDeps,
    private readonly session: MediaOwner,
    private readonly place: () => MediaPlace | null,
    private readonly onLost: () => void,
  ) {}

  /** The client may have a peer connection, which is lost with the handle. */
  get handle(): MediaPublisher | null {
    return this.#feed?.handle ?? null;
  }

  /** Whether the tracks of the latest offer are in PostgreSQL, or will be. False during a renegotiation. */
  get isAnnounced(): boolean {
    const feed = this.#feed;
    return feed?.phase === 'announced' || (feed?.phase === 'answered' && feed.isUp);
  }

  /** The record with which another gateway continues the feed; null while it changes, and without a feed. */
  get record(): PublisherRecord | null {
    return this.#feed?.phase === 'announced' ? this.#feed.record : null;
  }

  get whipRecord(): WhipRecord | null {
    return this.#feed?.whipRecord ?? null;
  }

  /** How long no packet has arrived, in milliseconds; 0 without a feed. */
  silentMs(nowMs: number): number {
    return this.#feed?.silentMs(nowMs) ?? 0;
  }

  /** Continues the feed of another gateway. @returns false if `tracks`, those in PostgreSQL, are not the feed's. */
  claim(
    node: MediaNode,
    session: MediaSession,
    record: PublisherRecord & Partial<Pick<WhipRecord, 'offer' | 'isSilent'>>,
    tracks: readonly TrackState[],
  ): boolean {
    const isFeed = tracks.length > 0 && tracks.every(({ feedId }) => feedId === record.feedId);
    if (this.#feed !== null || this.#isClosed || !isFeed) return false;
    const feed = new Feed(this.deps, this.session, { node, ...record }, this);
    feed.adopt(session, record, tracks);
    this.#feed = feed;
    // The gateway before may have died between a change of the session and the request to the media server.
    void feed.moderation.takeOver();
    return true;
  }

  /**
   * @returns the answer
   * @throws RequestFailure; the earlier tracks stay published if the media server only refused the offer
   */
  async publish({ sdp, tracks, encrypted = false }: ClientMessages['publish']): Promise<string> {
    const { connectionNumber, permissions, room } = this.session;
    const offer = checkOffer(sdp, tracks, permissions);
    if (this.deps.places.nodesPerRoomMax > 1) noteExtensions(offer);
    if (room.state?.room.encryption === 'required') {
      if (!encrypted) throw new RequestFailure('room_encrypted');
      offer.sdp = withEncryptableCodecs(offer);
    }
    return this.#publications(() => this.#publish(offer, connectionNumber));
  }

  /**
   * Mutes or unmutes a track of the session, for the others and on the media server.
   * @throws RequestFailure `not_found` if the session does not publish the track
   */
  async mute(trackId: string, muted: boolean): Promise<void> {
    const feed = this.#feed;
    const track = feed?.tracks.find((one) => one.trackId === trackId);
    const isStored = () => this.session.room.tracks.has(this.session.participantId, trackId);
    if (track === undefined && !isStored()) throw new RequestFailure('not_found');
    if (track !== undefined) track.muted = muted;
    await this.#serially(async () => {
      // Tracks that are not announced yet are announced with their mute state.
      if (this.#feed?.phase === 'announced' || isStored()) {
        await this.deps.writes.setMuted(this.session, trackId, muted);
      }
    });
    await feed?.moderation.agree();
  }

  /** Unpublishes all tracks, if `isDue` says so once earlier writes are done. */
  async unpublish(isDue: () => boolean = () => true): Promise<void> {
    await this.#serially(async () => {
      if (isDue()) await this.deps.writes.unpublishAll(this.session);
    });
  }

  /** Call this when the room shows another state of the session: its tracks, their mutes or its permissions. */
  onOwn(): void {
    if (this.#feed?.isAnswered === true) void this.#feed.moderation.agree();
  }

  /** Call this when the client's connection is lost. The peer connection stays if the client has an answer. */
  clientLost(): void {
    // Without one, its next offer may go to another handle. After a later offer it repeats that one.
    if (this.#feed?.isAnswered === false) void this.drop();
  }

  /** Detaches the handle, if there is one, and resolves when that is done. The tracks stay in the database. */
  drop(): Promise<void> {
    const feed = this.#take();
    return feed?.close() ?? Promise.resolve();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.drop();
  }

  onConnected(feed: Feed): void {
    if (feed === this.#feed) this.#setPhase(feed, feed.phase);
  }

  onEnded(feed: Feed, reason: string): void {
    if (feed !== this.#feed) return;
    this.deps.logger.info('publisher closed', { sessionId: this.session.sessionId, reason });
    void this.drop();
    const isLive = isStillLive(this.deps, this.session).catch(() => true);
    // The next publish waits for the check, because the session may have been removed.
    void this.#publications(async () => {
      if (await isLive) this.#lose();
    });
  }

  async #publish(offer: CheckedOffer, connectionNumber: number): Promise<string> {
    const place = this.place();
    // The client of this request may have lost its connection meanwhile.
    const isCurrent = () => this.session.isConnected && this.session.connectionNumber === connectionNumber;
    if (place === null || this.#isClosed || !isCurrent()) throw mediaUnavailable();
    // A new RTCPeerConnection has new DTLS keys, so it cannot continue on the handle of the old one.
    if (this.#feed?.isFor(place, offer.peerConnection) === false) void this.drop();
    const feed = (this.#feed ??= this.#newFeed(place, offer.peerConnection));
    const { phase } = feed;
    this.#setPhase(feed, 'offering');
    const answer = await this.#offer(feed, offer, place).catch((error: unknown) => {
      throw this.#failed(feed, phase, error);
    });
    if (feed !== this.#feed) throw mediaUnavailable();
    if (!isCurrent()) {
      this.#setPhase(feed, phase);
      throw mediaUnavailable();
    }
    feed.tracks = keepMutes(feed.tracks, offer.tracks);
    feed.isAnswered = true;
    if (this.session.isHeadless === true) {
      feed.offer = offer.sdp;
      this.deps.writes.changed(this.session);
    }
    this.#setPhase(feed, 'answered');
    return answer;
  }

  #newFeed({ node }: MediaPlace, peerConnection: string): Feed {
    const { sessionId, connectionNumber } = this.session;
    this.#attachments += 1;
    const id = `${sessionId}-${connectionNumber}-${this.#attachments}`;
    const feedId = this.deps.places.nodesPerRoomMax > 1 ? feedIdAt(id, node.id) : id;
    return new Feed(this.deps, this.session, { node, feedId, peerConnection }, this);
  }

  async #offer(feed: Feed, { sdp }: CheckedOffer, place: MediaPlace): Promise<string> {
    if (feed.handle === null) await feed.attach(place);
    if (feed.handle === null) throw mediaUnavailable();
    const publishers = this.session.room.tracks.publishers.all.length;
    const text = place.node.isOutdated ? withoutRetransmissions(sdp) : sdp;
    return feed.handle.publish(text, audioActivePacketsIn(publishers));
  }

  /** @returns the failure for the client of the offer */
  #failed(feed: Feed, phase: FeedPhase, error: unknown): unknown {
    if (feed !== this.#feed) return mediaUnavailable(error);
    // After a refused renegotiation the earlier negotiation stays in effect. A dead handle is of no further use.
    if (feed.isAnswered && error instanceof MediaError && error.code === 'invalid_sdp') {
      this.#setPhase(feed, phase);
    } else {
      void this.drop();
      if (feed.isAnswered) this.#lose();
    }
    return toFailure(error);
  }

  #setPhase(feed: Feed, phase: FeedPhase): void {
    const hasChanged = (feed.phase === 'announced') !== (phase === 'announced');
    feed.phase = phase;
    if (hasChanged) this.deps.writes.changed(this.session);
    if (phase === 'answered' && feed.isUp && !feed.isAnnouncing) void this.#announce(feed);
  }

  /**
   * Writes the tracks of the latest offer, so that the other participants learn of them. Retries until they are written,
   * the session is not held any more, or there is another offer. Never rejects.
   */
  async #announce(feed: Feed): Promise<void> {
    const isCurrent = () => feed === this.#feed && feed.phase === 'answered';
    feed.isAnnouncing = true;
    while (isCurrent()) {
      // The media server knows which tracks are muted before the other participants know the tracks.
      await feed.moderation.agree();
      try {
        const isWritten = await this.#serially(async () => isCurrent() && (await this.#write(feed)));
        // After a resumption, the next try uses the new connection number. After the session's end, none is needed.
        if (!isWritten && isCurrent() && !(await isStillLive(this.deps, this.session)) && isCurrent()) this.#forget();
      } catch (error) {
        this.deps.logger.warn('tracks not announced', { sessionId: this.session.sessionId, error });
        await new Promise((resolve) => setTimeout(resolve, ANNOUNCE_AGAIN_MS));
      }
    }
    feed.isAnnouncing = false;
  }

  /** @returns false if the tracks were not written, because this gateway does not hold the session */
  async #write(feed: Feed): Promise<boolean> {
    const { tracks } = feed;
    if (!(await this.deps.writes.publish(this.session, feed.stored))) return false;
    if (feed === this.#feed && feed.phase === 'answered' && feed.tracks === tracks) this.#setPhase(feed, 'announced');
    return true;
  }

  /** Another gateway holds the session by now, and the handle. */
  #forget(): void {
    this.#isClosed = true;
    this.#take()?.forget();
  }

  #take(): Feed | null {
    const feed = this.#feed;
    this.#feed = null;
    if (feed?.phase === 'announced') this.deps.writes.changed(this.session);
    return feed;
  }

  #lose(): void {
    if (!this.#isClosed) this.onLost();
  }
}

/**
 * Audio packets whose average level decides whether a track carries speech. The media server tells every publisher of the
 * room when that changes for one of them, so the time between two changes grows with the number of publishers.
 */
function audioActivePacketsIn(publishers: number): number {
  const packets = Math.round((AUDIO_ACTIVE_PACKETS_MIN * publishers) / TALKING_PUBLISHERS);
  return Math.min(AUDIO_ACTIVE_PACKETS_MAX, Math.max(AUDIO_ACTIVE_PACKETS_MIN, packets));
}
