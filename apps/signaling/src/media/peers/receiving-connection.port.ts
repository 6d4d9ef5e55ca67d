import type { MediaHost, MediaPlace } from '../media-host.js';
import type { Selection } from '../tracks/select-tracks.js';
import type { Subscription } from './subscription.js';

/** What a receiving connection needs of the subscriber that it belongs to. */
export interface ReceivingConnectionPort {
  readonly host: MediaHost;
  place(): MediaPlace | null;
  /** What the client should receive, given what it receives now. */
  select(active: Subscription | null): Selection;
  /** What is received may have changed. */
  onAligned(): void;
  /** The client has a connection again, and may have missed what it was told. */
  onRepeat(active: Subscription): void;
  /** The connection is given up. */
  onEnded(): void;
  /** The client's peer connection is lost. It should learn of that after the pause. */
  onLost(pauseMs: number): void;
}
