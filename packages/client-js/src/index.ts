/** Joins Callplane calls from a browser. */
export { connect, type Call } from './call.js';
export type {
  CallEncryption,
  EncryptionError,
  EncryptionKey,
  EncryptionOptions,
  ProvidedKey,
} from './encryption/options.js';
export type { RequestHandler, RequestInfo, RequestOptions } from './data/asks.js';
export type { IncomingStream, StreamHandler, StreamInfo } from './data/incoming.js';
export type { StreamOptions, StreamProgress, StreamResult, StreamSource } from './data/stream-options.js';
export { CallplaneError, type CallplaneErrorCode, type ClientErrorCode, type ErrorDetail } from './errors.js';
export type { CallEvents, ReceivedMessage, TrackSubscriptionFailure } from './events.js';
export {
  createLocalTracks,
  type DeviceOptions,
  type OpenedDevices,
  type ScreenOptions,
  type TrackFailure,
} from './local/create-tracks.js';
export { isSupported, listDevices, onDevicesChanged, type Device, type DeviceKind } from './local/devices.js';
export type { PublishResult, TrackOptions } from './local/local-media.js';
export type { LocalTrack, PublishedTrack, TrackProcessor } from './local/local-track.js';
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
export type { Participant, QualityChange, RemoteTrack, TrackQuality } from './remote/participant.js';
export type { Counts, RosterPage } from './remote/presence.js';
export type { CloseInfo } from './signaling/close-info.js';
export type { ConnectionState } from './signaling/session.js';
export { INITIAL_SNAPSHOT, type CallSnapshot } from './snapshot.js';
export type { Subscription } from './subscriptions.js';
export {
  testConnection,
  type ConnectionTest,
  type ConnectionTestOptions,
  type ConnectionTestStep,
  type LoopFigures,
} from './test-connection.js';
