import { PERMISSION_OF_SOURCE } from '@callplane/core';
import type { MediaNode } from '@callplane/media';
import type { MediaHost } from '../media-host.js';
import type { SendingTrack } from '../sdp/sdp-gate.js';

/** Pause before the media server is told again, in milliseconds. */
const AGAIN_MS = 1000;

/**
 * Makes the media server relay exactly the tracks of a feed that are permitted and not muted, according to the room's
 * state. It tells only differences. Clients cannot undo it, because the request needs the room's secret.
 */
export class Moderation {
  readonly #host: MediaHost;
  readonly #node: MediaNode;
  readonly #feedId: string;
  readonly #tracks: () => readonly SendingTrack[];
  /** What the media server was told last, by media section. It relays sections that it was told nothing about. */
  readonly #told = new Map<string, boolean>();
  /** Whether the media server may have been told something else, by another instance. */
  #isUnsure = false;
  #turn: Promise<void> = Promise.resolve();

  /** @param tracks the tracks of the feed; empty once the feed has ended. */
  constructor(host: MediaHost, node: MediaNode, feedId: string, tracks: () => readonly SendingTrack[]) {
    this.#host = host;
    this.#node = node;
    this.#feedId = feedId;
    this.#tracks = tracks;
  }

  /** Call this for a feed that another instance has negotiated: the media server is told everything once. */
  takeOver(): Promise<void> {
    this.#isUnsure = true;
    return this.agree();
  }

  /** Tells the media server what differs. Calls run one after another. Never rejects: a failure is tried again. */
  agree(): Promise<void> {
    this.#turn = this.#turn.then(() => this.#tellAll());
    return this.#turn;
  }

  async #tellAll(): Promise<void> {
    for (const track of this.#tracks()) {
      const muted = this.#isMuted(track);
      if ((this.#told.get(track.mid) ?? (this.#isUnsure ? null : false)) === muted) continue;
      try {
        await this.#node.moderate(this.#host.roomId, this.#feedId, track.mid, muted);
        this.#told.set(track.mid, muted);
      } catch (error) {
        this.#host.logger.warn('track not moderated', { sessionId: this.#host.sessionId, error });
        this.#repeat();
        return;
      }
    }
  }

  /**
   * Reads the room before the repetition: another gateway may hold the session by then, and an old mute state would
   * undo its requests.
   */
  #repeat(): void {
    const again = async (): Promise<void> => {
      if (this.#tracks().length === 0) return;
      const isLive = await this.#host.stillLive().catch(() => null);
      if (isLive === null) this.#repeat();
      else if (isLive) await this.agree();
    };
    setTimeout(() => void again(), AGAIN_MS).unref();
  }

  /**
   * Once a track is announced, the room's state decides, because it orders the mutes of the client and of the server.
   * Until then the client's own word counts.
   */
  #isMuted(track: SendingTrack): boolean {
    if (!this.#host.permissions.includes(PERMISSION_OF_SOURCE[track.source])) return true;
    const stored = this.#host.storedTracks().find(({ trackId }) => trackId === track.trackId);
    if (stored?.feedId === this.#feedId) track.muted = stored.muted;
    // A track that is published anew, over another peer connection, stays muted.
    return track.muted || stored?.muted === true;
  }
}
