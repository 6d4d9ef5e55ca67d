import type { MediaNode, MediaPublisher, MediaSession } from '@callplane/media';
import type { TrackState } from '@callplane/db';
import type { PublisherState } from '../handover/media-state.js';
import type { MediaHost, MediaPlace } from '../media-host.js';
import type { SendingTrack } from '../sdp/sdp-gate.js';
import { HeldCandidates } from './candidates.js';
import { Moderation } from './moderation.js';
import { reportSlowLink } from './slow-link.js';

/** A publisher's handle on the media server, and the tracks that the client sends on it. */
export class Feed {
  readonly #host: MediaHost;
  readonly handle: MediaPublisher;
  readonly node: MediaNode;
  /** Identifies the client's RTCPeerConnection; see `CheckedOffer`. */
  readonly peerConnection: string;
  readonly candidates: HeldCandidates;
  tracks: SendingTrack[] = [];
  /** Whether ICE and DTLS were up once. */
  isUp = false;
  /** Whether the media server has answered an offer. */
  isAnswered = false;
  readonly moderation: Moderation;
  #isClosed = false;

  private constructor(host: MediaHost, node: MediaNode, handle: MediaPublisher, peerConnection: string) {
    this.#host = host;
    this.handle = handle;
    this.node = node;
    this.peerConnection = peerConnection;
    this.candidates = new HeldCandidates(host, 'publisher');
    this.moderation = new Moderation(host, node, handle.feedId, () => (this.#isClosed ? [] : this.tracks));
    handle.on('candidate', (candidate) => this.candidates.add(candidate));
    reportSlowLink(host, 'publisher', handle);
  }

  /**
   * Attaches a handle.
   * @param attachment a number that the session has not used over its present connection
   * @throws MediaError
   */
  static async attach(host: MediaHost, place: MediaPlace, attachment: number, peerConnection: string): Promise<Feed> {
    // Never reused: a subscription to this feed id must refer to this attachment and no later one.
    const feedId = `${host.sessionId}-${host.connectionNumber}-${attachment}`;
    const [session] = await Promise.all([place.session(), place.node.ensureRoom(host.roomId)]);
    return new Feed(host, place.node, await session.attachPublisher(host.roomId, feedId), peerConnection);
  }

  /**
   * Takes over the feed of another gateway.
   * @param tracks the feed's tracks in PostgreSQL
   */
  static adopt(
    host: MediaHost,
    node: MediaNode,
    session: MediaSession,
    state: PublisherState,
    tracks: readonly TrackState[],
  ): Feed {
    const feed = new Feed(host, node, session.adoptPublisher(state.handle, state.feedId), state.peerConnection);
    feed.tracks = tracks.map((track) => ({ ...track }));
    feed.isAnswered = true;
    feed.isUp = true;
    feed.candidates.release();
    return feed;
  }

  /** Whether the client's peer connection can go on with this handle. */
  isFor({ node }: MediaPlace, peerConnection: string): boolean {
    return this.node === node && this.peerConnection === peerConnection;
  }

  /** The tracks as they are stored. */
  get stored(): TrackState[] {
    return this.tracks.map((track) => ({ ...track, feedId: this.handle.feedId }));
  }

  /** What another gateway needs to go on with the feed. */
  get state(): PublisherState {
    const { handle, peerConnection } = this;
    return { handle: handle.handleId, feedId: handle.feedId, peerConnection };
  }

  /** Lets go of the handle, which stays for another instance. Its events have no effect any more. */
  forget(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.handle.removeAllListeners();
    // The media server reports no end of speech for a handle that is gone, or that another gateway holds.
    for (const { trackId } of this.tracks) this.#host.speaking(trackId, null);
  }

  /**
   * Detaches the handle. Its events have no effect any more. If a request got no answer, another gateway may have
   * claimed the handle: then it is detached only if PostgreSQL says that this gateway holds the session.
   */
  async close(): Promise<void> {
    this.forget();
    if (this.handle.isUnanswered) {
      const isHeld = await this.#host.writeMedia().catch(() => false);
      if (!isHeld) return;
    }
    await this.handle.detach();
  }
}

/** A renegotiation unmutes nothing: the server may have muted a track since the client made its offer. */
export function keepMutes(before: readonly SendingTrack[], after: readonly SendingTrack[]): SendingTrack[] {
  const isMuted = ({ trackId, mid }: SendingTrack): boolean =>
    before.some((track) => track.trackId === trackId && track.mid === mid && track.muted);
  return after.map((track) => ({ ...track, muted: track.muted || isMuted(track) }));
}
