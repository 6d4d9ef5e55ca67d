import { isForwarded } from '@callplane/core';
import type { MediaNode } from '@callplane/media';
import type { IndexedTrack } from '../rooms/tracks.js';
import { isSpread, type Forwards, type ForwardUser, type TrackView } from './forwards.js';
import type { MediaOwner } from './media-writes.js';
import type { ReceivingPeer } from './receiving-peer.js';
import type { SelectedTrack, Selection, TrackSelector } from './selection.js';

/**
 * The selected tracks of a session with their streams on the session's media server. In a room on several servers, tracks
 * of other servers are missing until they are forwarded: selecting one asks for that.
 */
export class LocalSelection implements ForwardUser {
  #latest: { selected: Selection; view: TrackView; selection: Selection } | null = null;

  /**
   * @param node the session's media server; undefined without one
   * @param onForwards called when a selected track can be received, or cannot any more
   */
  constructor(
    private readonly forwards: Forwards,
    private readonly session: MediaOwner,
    private readonly node: () => MediaNode | undefined,
    readonly onForwards: () => void,
  ) {}

  /** The room's tracks as the media server has them. */
  get view(): TrackView {
    const { room } = this.session;
    const node = this.node();
    return node === undefined || !isSpread(room) ? room.tracks : this.forwards.view(room, node);
  }

  select(selector: TrackSelector, peer: ReceivingPeer | null): Selection {
    const { room } = this.session;
    const { view } = this;
    const selected = selector.select(peer?.sections.held, peer?.refusedKeys(view));
    const node = this.node();
    if (node === undefined || !isSpread(room)) {
      this.release();
      return selected;
    }
    if (this.#latest?.selected === selected && this.#latest.view === view) return this.#latest.selection;
    const tracks = new Map<string, SelectedTrack>();
    const elsewhere: IndexedTrack[] = [];
    for (const [key, track] of selected.tracks) {
      const published = room.tracks.entries.get(key);
      const here = view.entries.get(key);
      if (here !== undefined) tracks.set(key, { ...track, stream: { feedId: here.feedId, mid: here.mid } });
      if (published !== undefined && published !== here) elsewhere.push(published);
    }
    const selection = { tracks, crowdedOut: selected.crowdedOut };
    this.#latest = { selected, view, selection };
    this.forwards.use(this, room, node, elsewhere);
    return selection;
  }

  /** Reads which tracks are forwarded already, before the sections of another gateway are compared with them. */
  async load(): Promise<void> {
    const node = this.node();
    if (node !== undefined && isSpread(this.session.room)) await this.forwards.load(this.session.room, node);
  }

  /** @param isAbsent whether the media server does not have a stream */
  reportLost({ tracks }: Selection, isAbsent: (stream: SelectedTrack['stream']) => boolean): void {
    for (const { stream } of tracks.values()) {
      if (isForwarded(stream.feedId) && isAbsent(stream)) void this.forwards.lost(stream.feedId);
    }
  }

  /** The session receives nothing from other media servers any more. */
  release(): void {
    if (this.#latest !== null) this.forwards.release(this);
    this.#latest = null;
  }
}
