import type { CallplaneError } from './errors.js';
import type { LocalTrack } from './local/local-track.js';
import type { Participant } from './remote/participant.js';
import type { RosterEvents } from './remote/roster.js';
import type { CloseInfo, ConnectionState } from './signaling/session.js';

export interface ReceivedMessage {
  /** Participant id of the sender. */
  from: string;
  /** Undefined when the sender has left meanwhile. */
  participant: Participant | undefined;
  /** The JSON value that was sent. */
  data: unknown;
  sentAt: Date;
}

export interface CallEvents extends RosterEvents {
  /** `reconnecting` and back; `closed` at the end. */
  state: ConnectionState;
  /** The call is over, and why. */
  closed: CloseInfo;
  message: ReceivedMessage;
  mediaState: 'up' | 'down';
  localTrackPublished: LocalTrack;
  /** Unpublished, or ended by device, browser or gateway. */
  localTrackUnpublished: LocalTrack;
  /** Something in the background failed that no call of yours can report. The call goes on. */
  problem: CallplaneError;
}
