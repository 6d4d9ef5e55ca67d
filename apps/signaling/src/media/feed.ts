import { PERMISSION_OF_SOURCE } from '@callplane/core';
import type { TrackState } from '@callplane/db';
import { MediaError, type MediaNode, type MediaPublisher, type MediaSession } from '@callplane/media';
import pLimit from 'p-limit';
import { trackKey } from '../rooms/tracks.js';
import {
  isStillLive,
  storedTracks,
  type MediaDeps,
  type MediaOwner,
  type PublisherRecord,
  type WhipRecord,
} from './media-writes.js';
import type { MediaPlace } from './places.js';
import type { SendingTrack } from './sdp-gate.js';

/** Pause before requests of a moderation that failed are sent again, in milliseconds. */
const MODERATE_AGAIN_MS = 2000;

export type FeedPhase =
  /** The media server has an offer of the client to answer, or the handle for it is being attached. */
  | 'offering'
  /** The latest offer is answered. Its tracks are written once ICE and DTLS are up. */
  | 'answered'
  /** The tracks are in PostgreSQL, so the others can receive them. */
  | 'announced';

export interface FeedListener {
  onConnected(feed: Feed): void;
  onEnded(feed: Feed, reason: string): void;
}

interface FeedPlace extends Pick<PublisherRecord, 'feedId' | 'peerConnection'> {
  node: MediaNode;
  offer?: string | undefined;
  /** Of a feed of another gateway. */
  isSilent?: boolean | undefined;
}

/** A publisher's handle on the media server, from the attempt to attach it, and the tracks that the client sends on it. */
export class Feed {
  readonly node: MediaNode;
  readonly feedId: string;
  readonly peerConnection: string;
  readonly moderation: Moderation;
  handle: MediaPublisher | null = null;
  phase: FeedPhase = 'offering';
  tracks: SendingTrack[] = [];
  isUp = false;
  isAnswered = false;
  isAnnouncing = false;
  /** The last offer that was answered; kept only for a client that keeps no connection. */
  offer: string | undefined;
  #isClosed = false;
  /** The streams whose packets arrive. */
  readonly #receiving = new Set<string>();
  #silentSinceMs: number | null = performance.now();

  constructor(
    private readonly deps: MediaDeps,
    private readonly session: MediaOwner,
    { node, feedId, peerConnection, offer }: FeedPlace,
    private readonly listener: FeedListener,
  ) {
    this.node = node;
    this.feedId = feedId;
    this.peerConnection = peerConnection;
    this.offer = offer;
    this.moderation = new Moderation(deps, session, this);
  }

  /** The tracks; none once it has ended. */
  get sent(): readonly SendingTrack[] {
    return this.#isClosed ? [] : this.tracks;
  }

  get record(): PublisherRecord | null {
    const { feedId, peerConnection } = this;
    return this.handle === null ? null : { handle: this.handle.handleId, feedId, peerConnection };
  }

  get whipRecord(): WhipRecord | null {
    const { handle, offer } = this;
    if (handle === null || offer === undefined) return null;
    const tracks = this.tracks.map(({ trackId, mid, source }) => ({ trackId, mid, source }));
    const silent = this.#silentSinceMs === null ? {} : { isSilent: true };
    return { handle: handle.handleId, offer, tracks, ...silent };
  }

  silentMs(nowMs: number): number {
    return this.#silentSinceMs === null ? 0 : nowMs - this.#silentSinceMs;
  }

  get stored(): TrackState[] {
    return this.tracks.map((track) => ({ ...track, feedId: this.feedId }));
  }

  /** Whether the client's peer connection can continue with this handle. */
  isFor({ node }: MediaPlace, peerConnection: string): boolean {
    return this.node === node && this.peerConnection === peerConnection;
  }

  /** @throws MediaError if the media server fails, or the feed was closed meanwhile */
  async attach(place: MediaPlace): Promise<void> {
    const { roomId } = this.session;
    const [own] = await Promise.all([place.session(), place.node.ensureRoom(roomId)]);
    const handle = await own.attachPublisher(roomId, this.feedId);
    if (this.#isClosed) {
      await handle.detach();
      throw new MediaError('closed', 'The feed was given up');
    }
    this.#take(handle);
  }

  /**
   * Continues the feed of another gateway.
   * @param tracks the feed's tracks in PostgreSQL
   */
  adopt(
    session: MediaSession,
    { handle, feedId, isSilent = false }: PublisherRecord & Pick<FeedPlace, 'isSilent'>,
    tracks: readonly TrackState[],
  ): void {
    this.#take(session.adoptPublisher(handle, feedId));
    this.tracks = tracks.map((track) => ({ ...track }));
    this.phase = 'announced';
    this.isAnswered = true;
    this.isUp = true;
    // The media server reports changes only. Until one comes, the lowest layer of each track counts as arriving.
    if (!isSilent) for (const { mid } of tracks) this.#onReceiving(mid, 0, true);
  }

  /** Lets go of the handle, which stays for another gateway. Its events have no effect any more. */
  forget(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.handle?.removeAllListeners();
    // The media server reports no end of speech for a handle that is gone, or that another gateway holds.
    for (const { trackId } of this.tracks) this.#speaks(trackId, null);
  }

  /** Detaches the handle. Its events have no effect any more. A handle that is still being attached is detached then. */
  async close(): Promise<void> {
    this.forget();
    await this.handle?.detach();
  }

  #take(handle: MediaPublisher): void {
    this.handle = handle;
    handle.on('connected', () => {
      this.isUp = true;
      this.listener.onConnected(this);
    });
    handle.on('talking', (mid, level) => {
      const track = this.tracks.find((one) => one.mid === mid);
      if (track !== undefined) this.#speaks(track.trackId, level);
    });
    handle.on('receiving', (mid, layer, isReceiving) => this.#onReceiving(mid, layer, isReceiving));
    handle.on('closed', (reason) => this.listener.onEnded(this, reason));
  }

  #onReceiving(mid: string, layer: number, isReceiving: boolean): void {
    if (isReceiving) this.#receiving.add(`${mid}/${layer}`);
    else this.#receiving.delete(`${mid}/${layer}`);
    const wasSilent = this.#silentSinceMs !== null;
    this.#silentSinceMs = this.#receiving.size > 0 ? null : (this.#silentSinceMs ?? performance.now());
    if (this.offer !== undefined && wasSilent !== (this.#silentSinceMs !== null))
      this.deps.writes.changed(this.session);
  }

  /** @param level in dBov; null if the track carries no speech any more */
  #speaks(trackId: string, level: number | null): void {
    const { room, participantId } = this.session;
    room.speakers.note(trackKey({ participantId, trackId }), level);
  }
}

/**
 * Makes the media server relay exactly the tracks of a feed that are permitted and not muted, according to the room's
 * state. It sends only differences. Clients cannot undo it, because the request needs the room's secret.
 */
class Moderation {
  /**
   * Whether the media server holds a media section back, by mid; null if it may do either, after a request that failed.
   * It relays sections without an entry.
   */
  readonly #held = new Map<string, boolean | null>();
  /** Whether another instance may have sent requests for sections without an entry. */
  #isUnsure = false;
  readonly #serially = pLimit(1);
  /** The last pass, while it has not begun. */
  #next: Promise<void> | undefined;
  #again: NodeJS.Timeout | undefined;

  constructor(
    private readonly deps: MediaDeps,
    private readonly session: MediaOwner,
    private readonly feed: Feed,
  ) {}

  /** Call this for a feed that another instance has negotiated: the media server gets the state of each track once. */
  takeOver(): Promise<void> {
    this.#isUnsure = true;
    return this.agree();
  }

  /**
   * Sends the media server the differences. Passes run one after another; calls before the begin of one share it. Never
   * rejects: a failure is tried again.
   */
  agree(): Promise<void> {
    this.#next ??= this.#serially(() => {
      this.#next = undefined;
      return this.#sendAll();
    });
    return this.#next;
  }

  async #sendAll(): Promise<void> {
    clearTimeout(this.#again);
    const sent = await Promise.all(this.feed.sent.map((track) => this.#send(track.mid, this.#isMuted(track))));
    if (sent.includes(false)) this.#repeat();
  }

  /** @returns false if the request failed. The requests for other tracks do not wait for it. */
  async #send(mid: string, muted: boolean): Promise<boolean> {
    const held = this.#held.get(mid);
    const isHeld = held === undefined && !this.#isUnsure ? false : held;
    if (isHeld === muted) return true;
    // The media server may carry out a request without an answer in time: until it answers, either state is possible.
    this.#held.set(mid, null);
    try {
      await this.feed.node.moderate(this.session.roomId, this.feed.feedId, mid, muted);
      this.#held.set(mid, muted);
      return true;
    } catch (error) {
      this.deps.logger.warn('track not moderated', { sessionId: this.session.sessionId, error });
      // The media server relays nothing of a feed that it does not have. The next change asks again.
      return error instanceof MediaError && error.code === 'no_such_feed';
    }
  }

  /**
   * Sends the differences again after a pause. Reads the room first: another gateway may hold the session by then, and
   * an old mute state would undo its requests.
   */
  #repeat(): void {
    clearTimeout(this.#again);
    this.#again = setTimeout(() => void this.#repeatNow(), MODERATE_AGAIN_MS).unref();
  }

  async #repeatNow(): Promise<void> {
    if (this.feed.sent.length === 0) return;
    const isLive = await isStillLive(this.deps, this.session).catch(() => null);
    if (isLive === null) this.#repeat();
    else if (isLive) await this.agree();
  }

  /**
   * Once a track is announced, the room's state decides, because it orders the mutes of the client and of the server.
   * Until then the client's own word counts.
   */
  #isMuted(track: SendingTrack): boolean {
    if (!this.session.permissions.includes(PERMISSION_OF_SOURCE[track.source])) return true;
    const stored = storedTracks(this.session).find(({ trackId }) => trackId === track.trackId);
    if (stored?.feedId === this.feed.feedId) track.muted = stored.muted;
    // A track that is published anew, over another peer connection, stays muted.
    return track.muted || stored?.muted === true;
  }
}

/** A renegotiation unmutes nothing: the server may have muted a track since the client made its offer. */
export function keepMutes(before: readonly SendingTrack[], after: readonly SendingTrack[]): SendingTrack[] {
  const isMuted = ({ trackId, mid }: SendingTrack): boolean =>
    before.some((track) => track.trackId === trackId && track.mid === mid && track.muted);
  return after.map((track) => ({ ...track, muted: track.muted || isMuted(track) }));
}
