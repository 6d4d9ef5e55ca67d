// Written by packages/dev/src/generate from packages/protocol. Do not edit; run "npm run generate".

/**
 * The source of the track, as the publisher declares it.
 *
 */
export type TrackSource = 'microphone' | 'camera' | 'screen' | 'screen_audio';

export type TrackKind = 'audio' | 'video';

export type Candidate = {
  candidate: string;
  sdpMid?: string | null;
  sdpMLineIndex?: number | null;
  usernameFragment?: string | null;
} | null;

export type PeerTarget = 'publisher' | 'subscriber';

export type QualityLevel = 'good' | 'fair' | 'poor' | 'lost';

export type Change =
  | {
      kind: 'participant';
      participant: RemoteParticipant;
    }
  | {
      kind: 'tracks';
      participantId: string;
      sessionId: string;
      /**
       * All tracks of the participant from now on.
       */
      tracks: Track[];
    }
  | {
      kind: 'left';
      participantId: string;
      sessionId: string;
    }
  | {
      kind: 'hidden';
      participantId: string;
      sessionId: string;
    };

export type ClientMessage =
  | JoinRequest
  | TestRequest
  | ResumeRequest
  | PublishRequest
  | UnpublishRequest
  | MuteRequest
  | SubscribeRequest
  | UnsubscribeRequest
  | AnswerRequest
  | CandidateRequest
  | ResetMediaRequest
  | RestartIceRequest
  | RefreshVideoRequest
  | MessageRequest
  | AskRequest
  | ReplyRequest
  | StreamRequest
  | PartRequest
  | CreditRequest
  | MetadataRequest
  | RosterRequest
  | ShowRequest
  | QualityRequest
  | IceServersRequest
  | PingRequest
  | LeaveRequest;

export type ServerMessage =
  | WelcomeMessage
  | OkMessage
  | ErrorMessage
  | PublishedMessage
  | OfferMessage
  | SubscribedMessage
  | SubscriptionFailedMessage
  | MediaResetMessage
  | MediaStateMessage
  | ChangesMessage
  | ViewerCountMessage
  | RosterPagedMessage
  | RosterMessage
  | ShownMessage
  | PermissionsMessage
  | RoomUpdatedMessage
  | QualityMessage
  | SpeakersMessage
  | LayersWantedMessage
  | MessageMessage
  | AskMessage
  | ReplyMessage
  | StreamMessage
  | PartMessage
  | CreditMessage
  | IceServersMessage
  | PongMessage
  | ClosingMessage;

export interface Track {
  /**
   * Unique within the session.
   */
  trackId: string;
  kind: TrackKind;
  source: TrackSource;
  /**
   * Whether the publisher or the server has muted the track. The media server does not relay its media then.
   */
  muted: boolean;
}

export interface RemoteParticipant {
  participantId: string;
  sessionId: string;
  name: string;
  externalId: string | null;
  /**
   * The role of the token request. Absent: `participant`.
   */
  role?: string;
  metadata: Record<string, unknown>;
  /**
   * Start of the session, ISO 8601, UTC.
   */
  joinedAt: string;
  /**
   * False during the grace period after the connection was lost.
   */
  connected: boolean;
  tracks: Track[];
}

export interface TrackReference {
  participantId: string;
  /**
   * Unique within the session.
   */
  trackId: string;
}

export interface Layer {
  spatial?: number;
  temporal?: number;
}

export interface IceServer {
  urls: string[];
  username?: string;
  credential?: string;
  credentialType?: 'password';
}

export interface JoinRequest {
  type: 'join';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * Participant token (JWT).
   */
  token: string;
  /**
   * Whether to subscribe to every track automatically; default true.
   */
  autoSubscribe?: boolean;
  /**
   * Whether to refuse the join with `media_unavailable` if no media server is up; default false.
   */
  requireMedia?: boolean;
}

export interface TestRequest {
  type: 'test';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * Participant token (JWT).
   */
  token: string;
}

export interface ResumeRequest {
  type: 'resume';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  roomId?: string;
  sessionId: string;
  resumeSecret: string;
  /**
   * As in `join`; default true.
   */
  autoSubscribe?: boolean;
  /**
   * False if the client has lost its peer connections, for example by a page reload; default true.
   */
  continueMedia?: boolean;
  /**
   * `offerId` of the last `offer` that the client has answered over its present receiving connection. A gateway may ignore it.
   */
  offerId?: number;
  /**
   * The peer connections that the client has. Another gateway resets only these. Without the field, it takes both for present.
   *
   * @maxItems 2
   */
  peers?: PeerTarget[];
}

export interface PublishRequest {
  type: 'publish';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * At most 100000 printable ASCII characters, and line ends.
   */
  sdp: string;
  /**
   * @maxItems 4
   */
  tracks: {
    /**
     * Unique within the session.
     */
    trackId: string;
    /**
     * `mid` of the media section for the track in the offer.
     */
    mid: string;
    source: TrackSource;
    muted?: boolean;
  }[];
  /**
   * Whether the client encrypts every frame of the tracks end to end; default false. A room with `encryption: required` takes no other tracks.
   */
  encrypted?: boolean;
}

export interface UnpublishRequest {
  type: 'unpublish';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
}

export interface MuteRequest {
  type: 'mute';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * Unique within the session.
   */
  trackId: string;
  muted: boolean;
}

export interface SubscribeRequest {
  type: 'subscribe';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * @minItems 1
   * @maxItems 500
   */
  tracks: {
    participantId: string;
    /**
     * Unique within the session.
     */
    trackId: string;
    layer?: Layer;
    /**
     * Whether nothing is sent for now, for example because the track is not visible; default false. A paused track loses its place to one that is not paused.
     */
    paused?: boolean;
  }[];
}

export interface UnsubscribeRequest {
  type: 'unsubscribe';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * @minItems 1
   * @maxItems 500
   */
  tracks: TrackReference[];
}

export interface AnswerRequest {
  type: 'answer';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  offerId: number;
  /**
   * At most 100000 printable ASCII characters, and line ends.
   */
  sdp: string;
}

export interface CandidateRequest {
  type: 'candidate';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  target: PeerTarget;
  candidate: Candidate;
}

export interface ResetMediaRequest {
  type: 'resetMedia';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * @minItems 1
   * @maxItems 2
   */
  targets: PeerTarget[];
}

export interface RestartIceRequest {
  type: 'restartIce';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
}

export interface RefreshVideoRequest {
  type: 'refreshVideo';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * @minItems 1
   * @maxItems 2
   */
  targets: PeerTarget[];
}

export interface MessageRequest {
  type: 'message';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * Any JSON value.
   */
  data: unknown;
  /**
   * @minItems 1
   * @maxItems 100
   */
  to?: string[];
}

export interface AskRequest {
  type: 'ask';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * @minItems 1
   * @maxItems 100
   */
  to: string[];
  /**
   * Unique among the asks of the sender.
   */
  askId: string;
  /**
   * Names with `$` belong to the SDK.
   */
  method: string;
  /**
   * Any JSON value.
   */
  payload: unknown;
}

export interface ReplyRequest {
  type: 'reply';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  to: string;
  /**
   * Unique among the asks of the sender.
   */
  askId: string;
  /**
   * Any JSON value.
   */
  payload: unknown;
  failure?: 'no_handler' | 'handler_failed' | 'response_too_large';
}

export interface StreamRequest {
  type: 'stream';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * @minItems 1
   * @maxItems 100
   */
  to: string[];
  /**
   * Unique among the streams of the sender.
   */
  streamId: string;
  /**
   * Names with `$` belong to the SDK.
   */
  method: string;
  /**
   * Any JSON value.
   */
  payload: unknown;
}

export interface PartRequest {
  type: 'part';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * @minItems 1
   * @maxItems 100
   */
  to: string[];
  /**
   * Unique among the streams of the sender.
   */
  streamId: string;
  /**
   * Bytes of the stream before this part, as they were before encryption.
   */
  offset: number;
  /**
   * Base64, at most 16384 characters. Empty: the receiver repeats its last `credit`.
   */
  data: string;
  /**
   * Whether the stream ends with this part.
   */
  last?: boolean;
  /**
   * Whether the sender gives the stream up.
   */
  aborted?: boolean;
}

export interface CreditRequest {
  type: 'credit';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  to: string;
  /**
   * Unique among the streams of the sender.
   */
  streamId: string;
  /**
   * Bytes that have arrived in order.
   */
  received: number;
  /**
   * Bytes that the participant takes, counted from the start of the stream.
   */
  limit: number;
  /**
   * Whether all has arrived.
   */
  done?: boolean;
  failure?:
    | 'no_handler'
    | 'handler_failed'
    | 'stream_cancelled'
    | 'stream_unread'
    | 'stream_unknown'
    | 'stream_invalid'
    | 'too_many_streams'
    | 'undecryptable';
}

export interface MetadataRequest {
  type: 'metadata';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  metadata: Record<string, unknown>;
}

export interface RosterRequest {
  type: 'roster';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  cursor?: string;
  /**
   * Participants on the page at most; default 50.
   */
  limit?: number;
}

export interface ShowRequest {
  type: 'show';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  /**
   * @maxItems 200
   */
  participantIds: string[];
  /**
   * Whether to show the first 100 publishers, too; default true.
   */
  publishers?: boolean;
}

export interface QualityRequest {
  type: 'quality';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  level: QualityLevel;
  lossPercent?: number;
  roundTripMs?: number;
  jitterMs?: number;
  /**
   * Whether media goes through a TURN server; default false.
   */
  relay?: boolean;
}

export interface IceServersRequest {
  type: 'iceServers';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
  target?: PeerTarget;
}

export interface PingRequest {
  type: 'ping';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
}

export interface LeaveRequest {
  type: 'leave';
  /**
   * The answer repeats it as `replyTo`.
   */
  id?: string;
}

export interface WelcomeMessage {
  type: 'welcome';
  /**
   * The `id` of the request that this message answers; absent if the request had none.
   */
  replyTo?: string;
  waiting?: true;
  resumed: boolean;
  sessionId: string;
  /**
   * Secret that resumes this session over another connection.
   */
  resumeSecret: string;
  /**
   * Time in which a lost connection can be resumed, in seconds.
   */
  reconnectGraceSeconds: number;
  room: Record<string, unknown>;
  participant: RemoteParticipant;
  /**
   * The other participants: everyone, or in a paged room the first page, publishers first.
   */
  participants: RemoteParticipant[];
  roster: {
    /**
     * Whether viewers are only counted, and the roster is read in pages, because the room is large.
     */
    paged: boolean;
    /**
     * `cursor` of the next page; null on the last one.
     */
    next: string | null;
    /**
     * Everyone in the room, viewers and the client included.
     */
    participantCount: number;
    /**
     * Participants without tracks and without metadata.
     */
    viewerCount: number;
  };
  permissions: string[];
  iceServers: IceServer[];
  iceServersExpireAt: string;
  /**
   * Lifetime of the credentials, in seconds from now. The clock of a client may be wrong.
   */
  iceServersTtlSeconds: number;
  media: {
    state: 'up' | 'down';
    /**
     * Whether a resumed session keeps its peer connections. If false, create new ones and publish again.
     */
    continued: boolean;
  };
  /**
   * Send `ping` or any other message at least this often.
   */
  pingIntervalSeconds: number;
}

export interface OkMessage {
  type: 'ok';
  /**
   * The `id` of the request that this message answers; absent if the request had none.
   */
  replyTo?: string;
}

export interface ErrorMessage {
  type: 'error';
  /**
   * The `id` of the request that this message answers; absent if the request had none.
   */
  replyTo?: string;
  code:
    | 'invalid_message'
    | 'invalid_sdp'
    | 'permission_denied'
    | 'not_admitted'
    | 'media_unavailable'
    | 'not_found'
    | 'too_many_tracks'
    | 'track_refused'
    | 'room_encrypted'
    | 'conflict'
    | 'payload_too_large'
    | 'rate_limited'
    | 'unavailable';
  message: string;
  details?: {
    path: string;
    message: string;
  }[];
}

export interface PublishedMessage {
  type: 'published';
  /**
   * The `id` of the request that this message answers; absent if the request had none.
   */
  replyTo?: string;
  sdp: string;
}

export interface OfferMessage {
  type: 'offer';
  offerId: number;
  sdp: string;
}

export interface SubscribedMessage {
  type: 'subscribed';
  /**
   * @maxItems 33
   */
  tracks: {
    participantId: string;
    /**
     * Unique within the session.
     */
    trackId: string;
    mid: string;
  }[];
}

export interface SubscriptionFailedMessage {
  type: 'subscriptionFailed';
  /**
   * @minItems 1
   */
  tracks: {
    participantId: string;
    /**
     * Unique within the session.
     */
    trackId: string;
    code:
      | 'invalid_message'
      | 'invalid_sdp'
      | 'permission_denied'
      | 'not_admitted'
      | 'media_unavailable'
      | 'not_found'
      | 'too_many_tracks'
      | 'track_refused'
      | 'room_encrypted'
      | 'conflict'
      | 'payload_too_large'
      | 'rate_limited'
      | 'unavailable';
    message: string;
  }[];
}

export interface MediaResetMessage {
  type: 'mediaReset';
  /**
   * @minItems 1
   */
  targets: PeerTarget[];
}

export interface MediaStateMessage {
  type: 'mediaState';
  state: 'up' | 'down';
}

export interface ChangesMessage {
  type: 'changes';
  /**
   * @minItems 1
   */
  changes: Change[];
}

export interface ViewerCountMessage {
  type: 'viewerCount';
  /**
   * Everyone in the room, viewers and the client included.
   */
  participantCount: number;
  /**
   * Participants without tracks and without metadata.
   */
  viewerCount: number;
}

export interface RosterPagedMessage {
  type: 'rosterPaged';
  participants: RemoteParticipant[];
  /**
   * `cursor` of the next page; null on the last one.
   */
  next: string | null;
  /**
   * Everyone in the room, viewers and the client included.
   */
  participantCount: number;
  /**
   * Participants without tracks and without metadata.
   */
  viewerCount: number;
}

export interface RosterMessage {
  type: 'roster';
  /**
   * The `id` of the request that this message answers; absent if the request had none.
   */
  replyTo?: string;
  participants: RemoteParticipant[];
  /**
   * `cursor` of the next page; null on the last one.
   */
  next: string | null;
  /**
   * Everyone in the room, viewers and the client included.
   */
  participantCount: number;
  /**
   * Participants without tracks and without metadata.
   */
  viewerCount: number;
}

export interface ShownMessage {
  type: 'shown';
  /**
   * The `id` of the request that this message answers; absent if the request had none.
   */
  replyTo?: string;
  participants: RemoteParticipant[];
}

export interface PermissionsMessage {
  type: 'permissions';
  permissions: string[];
}

export interface RoomUpdatedMessage {
  type: 'roomUpdated';
  room: Record<string, unknown>;
}

export interface QualityMessage {
  type: 'quality';
  /**
   * @minItems 1
   */
  participants: {
    participantId: string;
    level: QualityLevel;
  }[];
}

export interface SpeakersMessage {
  type: 'speakers';
  /**
   * @maxItems 20
   */
  speakers: {
    participantId: string;
    /**
     * Amplitude when the participant began to speak.
     */
    level: number;
  }[];
}

export interface LayersWantedMessage {
  type: 'layersWanted';
  /**
   * @minItems 1
   * @maxItems 4
   */
  tracks: {
    /**
     * Unique within the session.
     */
    trackId: string;
    /**
     * The simulcast layers that are received, 0 being the lowest. Of a track that has fewer layers, the highest one stands for those above it.
     *
     * @maxItems 3
     */
    layers: number[];
  }[];
}

export interface MessageMessage {
  type: 'message';
  from: string;
  data: unknown;
  sentAt: string;
}

export interface AskMessage {
  type: 'ask';
  from: string;
  /**
   * Unique among the asks of the sender.
   */
  askId: string;
  /**
   * Names with `$` belong to the SDK.
   */
  method: string;
  /**
   * Any JSON value.
   */
  payload: unknown;
  sentAt: string;
}

export interface ReplyMessage {
  type: 'reply';
  from: string;
  /**
   * Unique among the asks of the sender.
   */
  askId: string;
  /**
   * Any JSON value.
   */
  payload: unknown;
  failure?: 'no_handler' | 'handler_failed' | 'response_too_large';
  sentAt: string;
}

export interface StreamMessage {
  type: 'stream';
  from: string;
  /**
   * Unique among the streams of the sender.
   */
  streamId: string;
  /**
   * Names with `$` belong to the SDK.
   */
  method: string;
  /**
   * Any JSON value.
   */
  payload: unknown;
  sentAt: string;
}

export interface PartMessage {
  type: 'part';
  from: string;
  /**
   * Unique among the streams of the sender.
   */
  streamId: string;
  /**
   * Bytes of the stream before this part, as they were before encryption.
   */
  offset: number;
  /**
   * Base64, at most 16384 characters. Empty: the receiver repeats its last `credit`.
   */
  data: string;
  /**
   * Whether the stream ends with this part.
   */
  last?: boolean;
  /**
   * Whether the sender gives the stream up.
   */
  aborted?: boolean;
}

export interface CreditMessage {
  type: 'credit';
  from: string;
  /**
   * Unique among the streams of the sender.
   */
  streamId: string;
  /**
   * Bytes that have arrived in order.
   */
  received: number;
  /**
   * Bytes that the participant takes, counted from the start of the stream.
   */
  limit: number;
  /**
   * Whether all has arrived.
   */
  done?: boolean;
  failure?:
    | 'no_handler'
    | 'handler_failed'
    | 'stream_cancelled'
    | 'stream_unread'
    | 'stream_unknown'
    | 'stream_invalid'
    | 'too_many_streams'
    | 'undecryptable';
}

export interface IceServersMessage {
  type: 'iceServers';
  /**
   * The `id` of the request that this message answers; absent if the request had none.
   */
  replyTo?: string;
  iceServers: IceServer[];
  iceServersExpireAt: string;
  /**
   * Lifetime of the credentials, in seconds from now. The clock of a client may be wrong.
   */
  iceServersTtlSeconds: number;
}

export interface PongMessage {
  type: 'pong';
  /**
   * The `id` of the request that this message answers; absent if the request had none.
   */
  replyTo?: string;
}

export interface ClosingMessage {
  type: 'closing';
  reason:
    | 'left'
    | 'removed'
    | 'room_ended'
    | 'superseded'
    | 'token_expired'
    | 'invalid_token'
    | 'invalid_session'
    | 'capacity'
    | 'media_unavailable'
    | 'drain'
    | 'unavailable'
    | 'protocol_error'
    | 'message_too_large'
    | 'rate_limited'
    | 'slow_consumer'
    | 'timeout'
    | 'too_many_attempts'
    | 'moved';
  message: string;
  reconnect: 'no' | 'resume' | 'join';
  /**
   * Only with `too_many_attempts`: seconds to wait before connecting again.
   */
  retryAfterSeconds?: number;
}

/** WebSocket sub-protocol. */
export const SUBPROTOCOL = 'callplane.v1';
/** Every way in which the gateway ends a connection. */
export const CLOSE_REASONS = {
  left: { code: 4000, reconnect: 'no', message: 'Left the room.' },
  removed: { code: 4001, reconnect: 'no', message: 'Removed from the room.' },
  room_ended: { code: 4002, reconnect: 'no', message: 'Room ended.' },
  superseded: { code: 4003, reconnect: 'no', message: 'Another connection of this participant joined.' },
  token_expired: { code: 4004, reconnect: 'no', message: 'Token expired. Request a new one from your backend.' },
  invalid_token: { code: 4005, reconnect: 'no', message: 'Invalid token.' },
  invalid_session: { code: 4006, reconnect: 'join', message: 'Session unknown or ended.' },
  capacity: { code: 4007, reconnect: 'join', message: 'Room full.' },
  media_unavailable: { code: 4008, reconnect: 'join', message: 'No media server available.' },
  drain: { code: 4009, reconnect: 'resume', message: 'Gateway shutting down. Reconnect to another instance.' },
  unavailable: { code: 4010, reconnect: 'resume', message: 'Service temporarily unavailable.' },
  protocol_error: { code: 4011, reconnect: 'no', message: 'Protocol violation.' },
  message_too_large: { code: 4012, reconnect: 'no', message: 'Message too large.' },
  rate_limited: { code: 4013, reconnect: 'resume', message: 'Too many messages.' },
  slow_consumer: { code: 4014, reconnect: 'resume', message: 'Client reads too slowly.' },
  timeout: { code: 4015, reconnect: 'resume', message: 'Connection timed out.' },
  too_many_attempts: { code: 4016, reconnect: 'resume', message: 'Too many joins or resumptions.' },
  moved: { code: 4017, reconnect: 'resume', message: 'Moved to another room.' },
} as const;
export type CloseReason = keyof typeof CLOSE_REASONS;
/** Why the gateway refused a request. */
export const ERROR_CODES = {
  invalid_message: 'The message does not match its schema. `details` lists the failures.',
  invalid_sdp: 'The session description is invalid.',
  permission_denied: 'The participant lacks the required permission.',
  not_admitted: 'The participant waits in the lobby.',
  media_unavailable: 'No media server is available. Requests without media still work.',
  not_found: 'Track or participant not found.',
  too_many_tracks: 'More tracks than allowed.',
  track_refused: 'The client cannot receive the track.',
  room_encrypted: 'The room takes only tracks that are encrypted end to end, as VP8, H.264 or Opus.',
  conflict: 'The request conflicts with the state of the session.',
  payload_too_large: 'The data or metadata is too large.',
  rate_limited: 'Too many requests. Slow down.',
  unavailable: 'A dependency is unavailable. Try again.',
} as const;
export type ErrorCode = keyof typeof ERROR_CODES;
/** The gateway refuses input beyond these. */
export const PROTOCOL_LIMITS = {
  frameBytesMax: 131072,
  firstFrameBytesMax: 10240,
  sdpCharsMax: 100000,
  messageBytesMax: 16384,
  metadataBytesMax: 16384,
  tracksMax: 4,
  recipientsMax: 100,
  subscriptionsMax: 500,
  videoSectionsMax: 25,
  audioSectionsMax: 8,
  sectionsMax: 40,
  speakersMax: 20,
  shownMax: 200,
  publishersShownMax: 100,
  rosterPageMax: 100,
  rosterPageBytesMax: 262144,
} as const;
