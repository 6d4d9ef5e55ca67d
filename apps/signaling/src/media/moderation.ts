import { PERMISSION_OF_SOURCE } from '@callplane/core';
import { MediaError, type MediaNode } from '@callplane/media';
import pLimit from 'p-limit';
import { isStillLive, storedTracks, type MediaDeps, type MediaOwner } from './context.js';
import type { SendingTrack } from './sdp-gate.js';

/** Pause before requests that failed are sent again, in milliseconds. */
const AGAIN_MS = 2000;

/** A feed, as its moderation sees it. */
interface ModeratedFeed {
  readonly node: MediaNode;
  readonly feedId: string;
  /** Its tracks; none once it has ended. */
  readonly sent: readonly SendingTrack[];
}

/**
 * Makes the media server relay exactly the tracks of a feed that are permitted and not muted, according to the room's
 * state. It sends only differences. Clients cannot undo it, because the request needs the room's secret.
 */
export class Moderation {
  readonly #deps: MediaDeps;
  readonly #session: MediaOwner;
  readonly #feed: ModeratedFeed;
  /**
   * Whether the media server holds a media section back, by mid; null if it may do either, after a request that failed.
   * It relays sections without an entry.
   */
  readonly #held = new Map<string, boolean | null>();
  /** Whether another instance may have sent requests for sections without an entry. */
  #isUnsure = false;
  readonly #inTurn = pLimit(1);
  /** The last turn, while it has not begun. */
  #next: Promise<void> | undefined;
  #again: NodeJS.Timeout | undefined;

  constructor(deps: MediaDeps, session: MediaOwner, feed: ModeratedFeed) {
    this.#deps = deps;
    this.#session = session;
    this.#feed = feed;
  }

  /** Call this for a feed that another instance has negotiated: the media server gets the state of each track once. */
  takeOver(): Promise<void> {
    this.#isUnsure = true;
    return this.agree();
  }

  /**
   * Sends the media server what differs. Turns run one after another; calls before the begin of one share it. Never
   * rejects: a failure is tried again.
   */
  agree(): Promise<void> {
    this.#next ??= this.#inTurn(() => {
      this.#next = undefined;
      return this.#sendAll();
    });
    return this.#next;
  }

  async #sendAll(): Promise<void> {
    clearTimeout(this.#again);
    const sent = await Promise.all(this.#feed.sent.map((track) => this.#send(track.mid, this.#isMuted(track))));
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
      await this.#feed.node.moderate(this.#session.roomId, this.#feed.feedId, mid, muted);
      this.#held.set(mid, muted);
      return true;
    } catch (error) {
      this.#deps.logger.warn('track not moderated', { sessionId: this.#session.sessionId, error });
      // The media server relays nothing of a feed that it does not have. The next change asks again.
      return error instanceof MediaError && error.code === 'no_such_feed';
    }
  }

  /**
   * Sends what differs again after a pause. Reads the room first: another gateway may hold the session by then, and an old
   * mute state would undo its requests.
   */
  #repeat(): void {
    clearTimeout(this.#again);
    this.#again = setTimeout(() => void this.#repeatNow(), AGAIN_MS).unref();
  }

  async #repeatNow(): Promise<void> {
    if (this.#feed.sent.length === 0) return;
    const isLive = await isStillLive(this.#deps, this.#session).catch(() => null);
    if (isLive === null) this.#repeat();
    else if (isLive) await this.agree();
  }

  /**
   * Once a track is announced, the room's state decides, because it orders the mutes of the client and of the server.
   * Until then the client's own word counts.
   */
  #isMuted(track: SendingTrack): boolean {
    if (!this.#session.permissions.includes(PERMISSION_OF_SOURCE[track.source])) return true;
    const stored = storedTracks(this.#session).find(({ trackId }) => trackId === track.trackId);
    if (stored?.feedId === this.#feed.feedId) track.muted = stored.muted;
    // A track that is published anew, over another peer connection, stays muted.
    return track.muted || stored?.muted === true;
  }
}
