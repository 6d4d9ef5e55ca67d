import type { EncryptionError } from './encryption/options.js';
import type { CallplaneError } from './errors.js';
import type { PublishedTrack } from './local/local-track.js';
import type { Room } from './metadata.js';
import type { PlaybackEvents } from './playback/playback.js';
import type { TrackReference } from './protocol.generated.js';
import type { Participant } from './remote/participant.js';
import type { PresenceEvents } from './remote/presence.js';
import type { RosterEvents } from './remote/roster.js';
import type { CloseInfo } from './signaling/close-info.js';
import type { ConnectionState } from './signaling/session.js';

export interface ReceivedMessage {
  /** Participant id of the sender; `server` if your backend has sent the message over the REST API. */
  from: (string & NonNullable<unknown>) | 'server';
  isFromServer: boolean;
  /** Undefined if the sender is the server, has left, or is not shown. */
  participant: Participant | undefined;
  /** The JSON value of the message. */
  data: unknown;
  sentAt: Date;
}

export interface TrackSubscriptionFailure extends TrackReference {
  /** `too_many_tracks`, `track_refused` (by the browser) or `not_found` (on the media server). */
  error: CallplaneError;
}

export interface CallEvents extends RosterEvents, PresenceEvents, PlaybackEvents {
  /** `reconnecting`, `connected` again, or after `waiting`, and finally `closed`. */
  state: ConnectionState;
  /** The participant was let in from the lobby: from now on it may publish, and has the others. */
  admitted: undefined;
  /** The call is over; `reason` says why. */
  closed: CloseInfo;
  /** Your backend has moved you to this room. The call has a new `participant`, and your tracks stay published. */
  moved: Room;
  message: ReceivedMessage;
  /** A track should be received, but is not. If that becomes possible later, `trackSubscribed` follows. */
  trackSubscriptionFailed: TrackSubscriptionFailure;
  mediaState: 'up' | 'down';
  localTrackPublished: PublishedTrack;
  /** Muted or unmuted, by you or by the server. */
  localTrackUpdated: PublishedTrack;
  /** Unpublished, or ended by the device, the browser or the gateway. */
  localTrackUnpublished: PublishedTrack;
  /** The chosen device is gone. The browser has opened its default one for the track. */
  deviceFallback: PublishedTrack;
  /**
   * Many frames of a track, or a message, cannot be decrypted. A track plays as soon as it can be; `isUndecryptable` of
   * the track says so.
   */
  encryptionError: EncryptionError;
  /** The server has changed your permissions. Tracks that you may no longer publish are unpublished. */
  permissionsChanged: readonly string[];
  /** A background failure that no call to the SDK can report. The call goes on. */
  problem: CallplaneError;
}
