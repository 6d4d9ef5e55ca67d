import { ERROR_CODES, type ErrorCode } from '@callplane/protocol';
import { trackOf } from '../rooms/tracks.js';
import type { TrackView } from './forwards.js';
import type { MediaOwner } from './media-writes.js';
import type { ReceivingPeer } from './receiving-peer.js';
import type { Selection } from './selection.js';

/** Attempts after which the client learns that the media server does not have a stream. */
const ABSENT_TRIES = 3;

const MESSAGES: Partial<Record<ErrorCode, string>> = {
  too_many_tracks: 'All media sections carry other tracks. Unsubscribe from some of them, or pause them.',
  track_refused: "The client's answer refused the media section of the track, or lacks its codec.",
  not_found: 'The media server does not have the track.',
};

/** Tells a client which tracks it receives on which sections, and which ones it does not get. */
export class SubscriberReports {
  /** Tracks last reported to the client; null after a hand-over. */
  #received: string | null = '[]';
  /** The failures that the client knows, by track key. */
  #failed = new Map<string, ErrorCode>();

  constructor(
    private readonly session: MediaOwner,
    private readonly local: { readonly view: TrackView },
  ) {}

  /** Reports the changes since the last report. */
  report(peer: ReceivingPeer | null, selection: Selection): void {
    const tracks = peer?.sections.tracks ?? [];
    const received = JSON.stringify(tracks);
    if (received !== this.#received) {
      this.#received = received;
      this.session.send({ type: 'subscribed', tracks });
    }
    this.#reportFailures(peer, selection);
  }

  /** The client may have missed the last report, or it came from another gateway: the next one is sent in any case. */
  repeat(): void {
    this.#received = null;
  }

  /** The handle is given up. The next `subscribed` is sent once a new handle carries tracks. */
  lost(): void {
    this.#received = '[]';
  }

  /** The client starts over. */
  forget(): void {
    this.#failed.clear();
  }

  #reportFailures(peer: ReceivingPeer | null, selection: Selection): void {
    const failed = new Map<string, ErrorCode>(selection.crowdedOut.map((key) => [key, 'too_many_tracks']));
    for (const key of peer?.refusedKeys(this.local.view) ?? []) failed.set(key, 'track_refused');
    for (const { key, stream } of selection.tracks.values()) {
      if ((peer?.sections.triesOf(stream) ?? 0) >= ABSENT_TRIES) failed.set(key, 'not_found');
    }
    const fresh = [...failed].filter(([key, code]) => this.#failed.get(key) !== code);
    this.#failed = failed;
    if (fresh.length === 0) return;
    const tracks = fresh.map(([key, code]) => ({
      ...trackOf(key),
      code,
      message: MESSAGES[code] ?? ERROR_CODES[code],
    }));
    this.session.send({ type: 'subscriptionFailed', tracks });
  }
}
