import type { TrackState } from '@callplane/db';
import { MediaError, type MediaNode, type MediaPublisher, type MediaSession } from '@callplane/media';
import { trackKey } from '../rooms/tracks.js';
import type { MediaDeps, MediaOwner, MediaPlace } from './context.js';
import type { PublisherRecord } from './media-writes.js';
import { Moderation } from './moderation.js';
import { HeldCandidates, reportSlowLink } from './peer-notices.js';
import type { SendingTrack } from './sdp-gate.js';

export type FeedPhase =
  /** The media server has an offer of the client to answer, or the handle for it is being attached. */
  | 'offering'
  /** The latest offer is answered. Its tracks are written once ICE and DTLS are up. */
  | 'answered'
  /** The tracks are in PostgreSQL, so the others can receive them. */
  | 'announced';

export interface FeedListener {
  /** ICE and DTLS are up. */
  onConnected(feed: Feed): void;
  /** The media server has ended the feed. */
  onEnded(feed: Feed, reason: string): void;
}

/** The place of a feed on a media server. */
interface FeedPlace {
  node: MediaNode;
  /** Never reused: a subscription to a feed id refers to one handle and no later one. */
  feedId: string;
  /** Identifies the client's RTCPeerConnection; see `CheckedOffer`. */
  peerConnection: string;
}

/** A publisher's handle on the media server, from the attempt to attach it, and the tracks that the client sends on it. */
export class Feed {
  readonly node: MediaNode;
  readonly feedId: string;
  readonly peerConnection: string;
  readonly candidates: HeldCandidates;
  readonly moderation: Moderation;
  /** Null until it is attached. */
  handle: MediaPublisher | null = null;
  phase: FeedPhase = 'offering';
  tracks: SendingTrack[] = [];
  /** Whether ICE and DTLS were up once. */
  isUp = false;
  /** Whether the media server has answered an offer. */
  isAnswered = false;
  /** Whether the tracks are being written. */
  isAnnouncing = false;
  readonly #session: MediaOwner;
  readonly #listener: FeedListener;
  #isClosed = false;

  constructor(
    deps: MediaDeps,
    session: MediaOwner,
    { node, feedId, peerConnection }: FeedPlace,
    listener: FeedListener,
  ) {
    this.#session = session;
    this.#listener = listener;
    this.node = node;
    this.feedId = feedId;
    this.peerConnection = peerConnection;
    this.candidates = new HeldCandidates(session, 'publisher');
    this.moderation = new Moderation(deps, session, this);
  }

  /** The tracks, as long as it has not ended. */
  get sent(): readonly SendingTrack[] {
    return this.#isClosed ? [] : this.tracks;
  }

  /** What another gateway needs to go on with the feed. */
  get record(): PublisherRecord | null {
    const { feedId, peerConnection } = this;
    return this.handle === null ? null : { handle: this.handle.handleId, feedId, peerConnection };
  }

  /** The tracks as they are stored. */
  get stored(): TrackState[] {
    return this.tracks.map((track) => ({ ...track, feedId: this.feedId }));
  }

  /** Whether the client's peer connection can go on with this handle. */
  isFor({ node }: MediaPlace, peerConnection: string): boolean {
    return this.node === node && this.peerConnection === peerConnection;
  }

  /** @throws MediaError if the media server fails, or the feed was closed meanwhile */
  async attach(place: MediaPlace): Promise<void> {
    const { roomId } = this.#session;
    const [own] = await Promise.all([place.session(), place.node.ensureRoom(roomId)]);
    const handle = await own.attachPublisher(roomId, this.feedId);
    if (this.#isClosed) {
      await handle.detach();
      throw new MediaError('closed', 'The feed is not wanted any more');
    }
    this.#take(handle);
  }

  /**
   * Goes on with the feed of another gateway.
   * @param tracks the feed's tracks in PostgreSQL
   */
  adopt(session: MediaSession, { handle, feedId }: PublisherRecord, tracks: readonly TrackState[]): void {
    this.#take(session.adoptPublisher(handle, feedId));
    this.tracks = tracks.map((track) => ({ ...track }));
    this.phase = 'announced';
    this.isAnswered = true;
    this.isUp = true;
    this.candidates.release();
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
    handle.on('candidate', (candidate) => this.candidates.add(candidate));
    handle.on('connected', () => {
      this.isUp = true;
      this.#listener.onConnected(this);
    });
    handle.on('talking', (mid, level) => {
      const track = this.tracks.find((one) => one.mid === mid);
      if (track !== undefined) this.#speaks(track.trackId, level);
    });
    handle.on('closed', (reason) => this.#listener.onEnded(this, reason));
    reportSlowLink(this.#session, 'publisher', handle);
  }

  /** @param level in dBov; null if the track carries no speech any more */
  #speaks(trackId: string, level: number | null): void {
    const { room, participantId } = this.#session;
    room.speakers.note(trackKey(participantId, trackId), level);
  }
}

/** A renegotiation unmutes nothing: the server may have muted a track since the client made its offer. */
export function keepMutes(before: readonly SendingTrack[], after: readonly SendingTrack[]): SendingTrack[] {
  const isMuted = ({ trackId, mid }: SendingTrack): boolean =>
    before.some((track) => track.trackId === trackId && track.mid === mid && track.muted);
  return after.map((track) => ({ ...track, muted: track.muted || isMuted(track) }));
}
