import { ERROR_CODES, type ErrorCode, type ServerMessages } from '@callplane/protocol';
import { trackOf } from '../../rooms/tracks.js';
import type { MediaHost } from '../media-host.js';
import type { Selection } from '../tracks/select-tracks.js';
import type { Subscription } from './subscription.js';

/** Attempts after which the client learns that the media server does not have a stream. */
const ABSENT_TRIES = 3;

type ReportingHost = Pick<MediaHost, 'send' | 'tracks'>;

/** Tells a client which tracks it receives on which sections, and which ones it does not get. */
export class SubscriberReports {
  readonly #host: ReportingHost;
  /** What the client knows that it receives; null if that is not known here. */
  #received: string | null = '[]';
  /** The failures that the client knows, by track key. */
  #failed = new Map<string, ErrorCode>();

  constructor(host: ReportingHost) {
    this.#host = host;
  }

  /** Reports what has changed since the last report. */
  report(active: Subscription | null, selection: Selection): void {
    const tracks = active?.sections.tracks ?? [];
    const received = JSON.stringify(tracks);
    if (received !== this.#received) {
      this.#received = received;
      this.#send({ type: 'subscribed', tracks });
    }
    this.#reportFailures(active, selection);
  }

  /** The connection comes from another gateway: the next report is sent in any case. */
  claimed(): void {
    this.#received = null;
  }

  /** Repeats what the client receives: it may have missed the last report. */
  repeat(active: Subscription): void {
    if (active.outstanding === null) this.#send({ type: 'subscribed', tracks: active.sections.tracks });
  }

  /** The handle is given up. The next `subscribed` is sent once a new handle carries tracks. */
  lost(): void {
    this.#received = '[]';
  }

  /** The client starts over. */
  forget(): void {
    this.#failed.clear();
  }

  #reportFailures(active: Subscription | null, { wants, crowdedOut }: Selection): void {
    const failed = new Map<string, ErrorCode>(crowdedOut.map((key) => [key, 'too_many_tracks']));
    for (const key of active?.refusedKeys(this.#host.tracks()) ?? []) failed.set(key, 'track_refused');
    for (const { key, stream } of wants.values()) {
      if ((active?.notes.triesOf(stream) ?? 0) >= ABSENT_TRIES) failed.set(key, 'not_found');
    }
    const fresh = [...failed].filter(([key, code]) => this.#failed.get(key) !== code);
    this.#failed = failed;
    if (fresh.length === 0) return;
    const tracks = fresh.map(([key, code]) => ({
      ...trackOf(key),
      code,
      message: MESSAGES[code] ?? ERROR_CODES[code],
    }));
    this.#send({ type: 'subscriptionFailed', tracks });
  }

  #send(message: ServerMessages['subscribed'] | ServerMessages['subscriptionFailed']): void {
    this.#host.send(message);
  }
}

const MESSAGES: Partial<Record<ErrorCode, string>> = {
  too_many_tracks: 'All media sections carry other tracks. Unsubscribe from some of them, or pause them.',
  track_refused: "The client's answer refused the media section of the track.",
  not_found: 'The media server does not have the track.',
};
