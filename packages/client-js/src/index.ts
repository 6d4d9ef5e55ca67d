/** Joins Callplane calls from a browser. */
export type { TrackQuality, TrackQualityChange } from './adaptation/track-quality.js';
export type { Call } from './call.js';
export { connect } from './connect.js';
export { CallplaneError, type CallplaneErrorCode, type ClientErrorCode, type ErrorDetail } from './errors.js';
export type { CallEvents, ReceivedMessage, TrackSubscriptionFailure } from './events.js';
export { createLocalTracks, type DeviceOptions } from './local/create-tracks.js';
export { isSupported, listDevices, onDevicesChanged, type Device, type DeviceKind } from './local/devices.js';
export type { TrackOptions } from './local/local-media.js';
export type { LocalTrack } from './local/local-track.js';
export type { ScreenOptions } from './local/screen.js';
// All of it, not by name: only then can applications extend the interface `Metadata`.
export * from './metadata.js';
export type { ConnectOptions } from './options.js';
export type { Platform, WebSocketLike } from './platform.js';
export type {
  Layer,
  QualityLevel,
  RemoteParticipant,
  TrackKind,
  TrackReference,
  TrackSource,
} from './protocol.generated.js';
export type { Participant, RemoteTrack } from './remote/participant.js';
export type { QualityChange } from './quality/reported-quality.js';
export type { Counts, RosterPage } from './remote/presence.js';
export type { CloseInfo, ConnectionState } from './signaling/session.js';
export type { Subscription } from './subscriptions.js';
