import type { TrackState } from '@callplane/db';
import { MediaError, type MediaNode, type MediaPublisher, type MediaSession } from '@callplane/media';
import type { Candidate, ClientMessages } from '@callplane/protocol';
import { IGNORE, NEVER } from '../../states/state-table.js';
import type { PublisherState } from '../handover/media-state.js';
import { mediaUnavailable, type MediaHost, type MediaPlace } from '../media-host.js';
import { clientOffer, type ClientOffer } from '../sdp/client-offer.js';
import { Serial } from '../serial.js';
import { announce } from './announce.js';
import { addCandidate } from './candidates.js';
import { Feed, keepMutes } from './feed.js';
import { toFailure } from './media-failure.js';
import { mute } from './mute.js';
import type { PublisherPort } from './publisher-port.js';
import {
  PUBLISHER_STATES,
  type PublisherAction,
  type PublisherEvent,
  type PublisherStateName,
} from './publisher-states.js';

/**
 * The publisher's half of a session's media: the peer connection on which the client sends. `PUBLISHER_STATES` says what
 * each event does; this class runs the actions.
 */
export class Publisher {
  readonly #host: MediaHost;
  readonly #port: PublisherPort;
  #state: PublisherStateName = 'idle';
  #feed: Feed | null = null;
  /** Runs one publish request at a time. One from an earlier connection may still wait for the media server. */
  readonly #publications = new Serial();
  /** Number of the request in progress. A cancelled one has an older number. */
  #attempt = 0;
  /** Check of a feed that ended by itself. The next publish waits for it, because the session may have been removed. */
  #checked: Promise<unknown> = Promise.resolve();
  #detached = Promise.resolve();
  #attachments = 0;
  #announcements = 0;

  constructor(host: MediaHost, port: PublisherPort) {
    this.#host = host;
    this.#port = port;
  }

  get state(): PublisherStateName {
    return this.#state;
  }

  get handle(): MediaPublisher | undefined {
    return this.#feed?.handle;
  }

  /** Whether the tracks of the latest offer are in PostgreSQL, or will be. False during a renegotiation. */
  get isAnnounced(): boolean {
    return this.#state === 'live' || this.#state === 'announcing';
  }

  /** What another gateway needs to go on with the feed; null while it changes, and without one. */
  handOver(): PublisherState | null {
    return this.#state === 'live' && this.#feed !== null ? this.#feed.state : null;
  }

  /** Goes on with the feed of another gateway. @returns false if `tracks`, those in PostgreSQL, are not the feed's. */
  claim(node: MediaNode, session: MediaSession, state: PublisherState, tracks: readonly TrackState[]): boolean {
    const isFeed = tracks.length > 0 && tracks.every(({ feedId }) => feedId === state.feedId);
    if (this.#state !== 'idle' || !isFeed) return false;
    this.#adopt(Feed.adopt(this.#host, node, session, state, tracks));
    this.#dispatch('claimed');
    // The gateway before may have died between a change of the session and the request to the media server.
    void this.#feed?.moderation.takeOver();
    return true;
  }

  /** @throws RequestFailure; the earlier tracks stay published if the media server only refused the offer */
  async publish(request: ClientMessages['publish']): Promise<void> {
    const { connectionNumber, permissions } = this.#host;
    const offer = clientOffer(request, permissions);
    await this.#publications.run(() => this.#publish(offer, request.id, connectionNumber));
  }

  mute(trackId: string, muted: boolean): Promise<void> {
    const sending = { feed: this.#feed, writes: this.#port.writes, isAnnounced: () => this.#state === 'live' };
    return mute(this.#host, sending, trackId, muted);
  }

  /** Call this when the room shows another state of the session: its tracks, their mutes or its permissions. */
  onOwn(): void {
    if (this.#feed?.isAnswered === true) void this.#feed.moderation.agree();
  }

  /** @returns false if the peer connection does not exist (any more) */
  addCandidate(candidate: Candidate): Promise<boolean> {
    return addCandidate(this.#feed?.handle, candidate);
  }

  /** Call this when the client has a connection again: the candidates since its loss did not reach it. */
  repeatCandidates(): void {
    this.#feed?.candidates.repeat();
  }

  /** Call this when the client's connection is lost. The peer connection stays if the client has its answer. */
  clientLost(): void {
    this.#dispatch('clientLost');
  }

  /** Detaches the handle, if there is one, and resolves when that is done. The tracks stay in the database. */
  drop(): Promise<void> {
    this.#dispatch('drop');
    return this.#detached;
  }

  close(): Promise<void> {
    this.#dispatch('close');
    return this.#detached;
  }

  async #publish(offer: ClientOffer, replyTo: string | undefined, connectionNumber: number): Promise<void> {
    await this.#checked;
    const place = this.#port.place();
    // The client of this request may have lost its connection meanwhile.
    const isWanted = this.#host.isConnected && this.#host.connectionNumber === connectionNumber;
    if (place === null || this.#state === 'closed' || !isWanted) throw mediaUnavailable();
    // A new RTCPeerConnection has new DTLS keys, so it cannot continue on the handle of the old one.
    if (this.#feed?.isFor(place, offer.peerConnection) === false) this.#dispatch('drop');
    this.#attempt += 1;
    const attempt = this.#attempt;
    this.#dispatch('publish');
    const feed = this.#feed ?? (await this.#attach(place, offer.peerConnection, attempt));
    const sdp = await this.#offer(feed, offer, attempt);
    feed.tracks = keepMutes(feed.tracks, offer.tracks);
    feed.isAnswered = true;
    this.#dispatch('answered');
    this.#host.send({ type: 'published', ...(replyTo === undefined ? {} : { replyTo }), sdp });
    this.#port.onAnswered();
    this.#settled(feed);
  }

  async #attach(place: MediaPlace, peerConnection: string, attempt: number): Promise<Feed> {
    this.#attachments += 1;
    let feed: Feed;
    try {
      feed = await Feed.attach(this.#host, place, this.#attachments, peerConnection);
    } catch (error) {
      if (this.#attempt === attempt) this.#dispatch('failed');
      throw toFailure(error);
    }
    if (this.#attempt !== attempt) {
      await feed.close();
      throw mediaUnavailable();
    }
    this.#adopt(feed);
    this.#dispatch('attached');
    return feed;
  }

  async #offer(feed: Feed, { sdp }: ClientOffer, attempt: number): Promise<string> {
    let answer: string;
    feed.candidates.hold();
    try {
      answer = await feed.handle.publish(sdp, { audioActivePackets: this.#host.audioActivePackets });
    } catch (error) {
      if (this.#attempt === attempt) {
        // After a refused renegotiation the earlier negotiation stays in effect. A dead handle is of no further use.
        const isKept = error instanceof MediaError && error.code === 'invalid_sdp' && feed.isAnswered;
        this.#dispatch(isKept ? 'kept' : 'failed');
        if (isKept) this.#settled(feed);
      }
      throw toFailure(error);
    }
    if (this.#attempt !== attempt) throw mediaUnavailable();
    return answer;
  }

  #adopt(feed: Feed): void {
    this.#feed = feed;
    feed.handle.on('connected', () => {
      feed.isUp = true;
      this.#dispatch('connected');
    });
    feed.handle.on('talking', (mid, level) => {
      const track = feed.tracks.find((one) => one.mid === mid);
      if (track !== undefined) this.#host.speaking(track.trackId, level);
    });
    feed.handle.on('closed', (reason) => {
      this.#host.logger.info('publisher closed', { sessionId: this.#host.sessionId, reason });
      this.#dispatch('hungUp');
    });
  }

  #settled(feed: Feed): void {
    feed.candidates.release();
    if (feed.isUp && this.#feed === feed) this.#dispatch('connected');
  }

  #dispatch(event: PublisherEvent): void {
    const cell = PUBLISHER_STATES[this.#state][event];
    if (cell === IGNORE) return;
    if (cell === NEVER) {
      const { logger, sessionId } = this.#host;
      logger.error('event impossible in this state', { sessionId, machine: 'publisher', state: this.#state, event });
      return;
    }
    const wasLive = this.#state === 'live';
    this.#state = cell.to;
    if ((wasLive || cell.to === 'live') && cell.to !== 'closed') this.#host.mediaChanged();
    for (const action of cell.actions) this.#run(action);
    // A cancelled offer may have left a peer connection that is up.
    if (event === 'clientLost' && this.#feed !== null) this.#settled(this.#feed);
  }

  #run(action: PublisherAction): void {
    switch (action) {
      case 'announce':
        if (this.#feed !== null) void this.#announce(this.#feed);
        return;
      case 'cancel':
        this.#attempt += 1;
        return;
      case 'detach':
        this.#detached = this.#feed?.close() ?? Promise.resolve();
        this.#feed = null;
        return;
      case 'forget':
        this.#feed?.forget();
        this.#feed = null;
        return;
      case 'lose':
        this.#lose();
        return;
      case 'check':
        this.#checked = this.#host
          .stillLive()
          .catch(() => true)
          .then((isLive) => isLive && this.#lose());
    }
  }

  #lose(): void {
    if (this.#state !== 'closed') this.#port.onLost('publisher');
  }

  async #announce(feed: Feed): Promise<void> {
    this.#announcements += 1;
    const announcement = this.#announcements;
    const isWanted = () => this.#state === 'announcing' && this.#announcements === announcement;
    const outcome = await announce(this.#host, this.#port, feed, isWanted);
    if (outcome !== 'unwanted') this.#dispatch(outcome);
  }
}
