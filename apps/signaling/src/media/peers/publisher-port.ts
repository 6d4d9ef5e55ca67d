import type { PeerTarget } from '@callplane/protocol';
import type { MediaState, PublisherState } from '../handover/media-state.js';
import type { MediaPlace } from '../media-host.js';
import type { Serial } from '../serial.js';

/** What a publisher needs of the session's media. */
export interface PublisherPort {
  place(): MediaPlace | null;
  /** Runs one write of the session's tracks at a time, so that a slow publish cannot commit after a later unpublish. */
  writes: Serial;
  /** Where the session's media is, with this publisher. */
  stateWith: (publisher: PublisherState) => MediaState | null;
  /** Called when an offer was answered: the client has this peer connection. */
  onAnswered(): void;
  /** Called when the media server has lost the client's peer connection. */
  onLost(target: PeerTarget): void;
}
