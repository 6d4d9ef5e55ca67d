/** Joins calls of a Callplane from a browser. */
export type { Call } from './call.js';
export { connect } from './connect.js';
export { CallplaneError, type CallplaneErrorCode, type ClientErrorCode } from './errors.js';
export type { CallEvents, ReceivedMessage } from './events.js';
export type { DeviceOptions, TrackOptions } from './local/local-media.js';
export type { LocalTrack } from './local/local-track.js';
export type { ConnectOptions } from './options.js';
export type { Platform, WebSocketLike } from './platform.js';
export type { Layer, RemoteParticipant, TrackKind, TrackReference, TrackSource } from './protocol.generated.js';
export type { Participant, RemoteTrack } from './remote/participant.js';
export type { CloseInfo, ConnectionState } from './signaling/session.js';
export type { Subscription } from './subscriptions.js';
