// Written by scripts/generate.mjs from packages/protocol. Do not edit; run "npm run generate".

/**
 * What the track shows.
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

export type ClientMessage =
  | JoinRequest
  | ResumeRequest
  | PublishRequest
  | UnpublishRequest
  | MuteRequest
  | SubscribeRequest
  | UnsubscribeRequest
  | AnswerRequest
  | CandidateRequest
  | ResetMediaRequest
  | MessageRequest
  | MetadataRequest
  | IceServersRequest
  | PingRequest
  | LeaveRequest;

export type ServerMessage =
  | WelcomeMessage
  | OkMessage
  | ErrorMessage
  | PublishedMessage
  | OfferMessage
  | CandidateMessage
  | MediaResetMessage
  | MediaStateMessage
  | ParticipantJoinedMessage
  | ParticipantUpdatedMessage
  | ParticipantLeftMessage
  | TrackPublishedMessage
  | TrackUnpublishedMessage
  | TrackUpdatedMessage
  | MessageMessage
  | IceServersMessage
  | PongMessage
  | ClosingMessage;

export interface Track {
  /**
   * Unique within its session.
   */
  trackId: string;
  kind: TrackKind;
  source: TrackSource;
  /**
   * Whether the publisher sends nothing on it at present.
   */
  muted: boolean;
}

export interface RemoteParticipant {
  participantId: string;
  sessionId: string;
  name: string;
  externalId: string | null;
  metadata: Record<string, unknown>;
  /**
   * Start of the session, ISO 8601, UTC.
   */
  joinedAt: string;
  /**
   * False within the grace period after its connection was lost.
   */
  connected: boolean;
  tracks: Track[];
}

export interface TrackReference {
  participantId: string;
  /**
   * Unique within its session.
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
   * Repeated as `replyTo` in the answer.
   */
  id?: string;
  /**
   * Participant token (JWT).
   */
  token: string;
  /**
   * Whether to receive every track without asking; default true.
   */
  autoSubscribe?: boolean;
  /**
   * Whether to be refused (`media_unavailable`) rather than join without media.
   */
  requireMedia?: boolean;
}

export interface ResumeRequest {
  type: 'resume';
  /**
   * Repeated as `replyTo` in the answer.
   */
  id?: string;
  sessionId: string;
  resumeSecret: string;
  /**
   * As in `join`; default true.
   */
  autoSubscribe?: boolean;
  /**
   * False when the client has no peer connections any more, as after a reload; default true.
   */
  continueMedia?: boolean;
}

export interface PublishRequest {
  type: 'publish';
  /**
   * Repeated as `replyTo` in the answer.
   */
  id?: string;
  sdp: string;
  /**
   * @maxItems 4
   */
  tracks: {
    /**
     * Unique within its session.
     */
    trackId: string;
    /**
     * Its media section in the offer.
     */
    mid: string;
    source: TrackSource;
    muted?: boolean;
  }[];
}

export interface UnpublishRequest {
  type: 'unpublish';
  /**
   * Repeated as `replyTo` in the answer.
   */
  id?: string;
}

export interface MuteRequest {
  type: 'mute';
  /**
   * Repeated as `replyTo` in the answer.
   */
  id?: string;
  /**
   * Unique within its session.
   */
  trackId: string;
  muted: boolean;
}

export interface SubscribeRequest {
  type: 'subscribe';
  /**
   * Repeated as `replyTo` in the answer.
   */
  id?: string;
  /**
   * @minItems 1
   * @maxItems 500
   */
  tracks: {
    participantId: string;
    /**
     * Unique within its session.
     */
    trackId: string;
    layer?: Layer;
  }[];
}

export interface UnsubscribeRequest {
  type: 'unsubscribe';
  /**
   * Repeated as `replyTo` in the answer.
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
   * Repeated as `replyTo` in the answer.
   */
  id?: string;
  offerId: number;
  sdp: string;
}

export interface CandidateRequest {
  type: 'candidate';
  /**
   * Repeated as `replyTo` in the answer.
   */
  id?: string;
  target: PeerTarget;
  candidate: Candidate;
}

export interface ResetMediaRequest {
  type: 'resetMedia';
  /**
   * Repeated as `replyTo` in the answer.
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
   * Repeated as `replyTo` in the answer.
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

export interface MetadataRequest {
  type: 'metadata';
  /**
   * Repeated as `replyTo` in the answer.
   */
  id?: string;
  metadata: Record<string, unknown>;
}

export interface IceServersRequest {
  type: 'iceServers';
  /**
   * Repeated as `replyTo` in the answer.
   */
  id?: string;
}

export interface PingRequest {
  type: 'ping';
  /**
   * Repeated as `replyTo` in the answer.
   */
  id?: string;
}

export interface LeaveRequest {
  type: 'leave';
  /**
   * Repeated as `replyTo` in the answer.
   */
  id?: string;
}

export interface WelcomeMessage {
  type: 'welcome';
  /**
   * The `id` of the request that this answers.
   */
  replyTo?: string;
  resumed: boolean;
  sessionId: string;
  /**
   * Lets this session go on over another connection; keep it secret.
   */
  resumeSecret: string;
  /**
   * How long the session outlives a lost connection.
   */
  reconnectGraceSeconds: number;
  room: Record<string, unknown>;
  participant: RemoteParticipant;
  /**
   * The others.
   */
  participants: RemoteParticipant[];
  permissions: string[];
  iceServers: IceServer[];
  iceServersExpireAt: string;
  media: {
    state: 'up' | 'down';
    /**
     * After a resume: the peer connections are still good. False: make new ones and publish again.
     */
    continued: boolean;
  };
  /**
   * Send `ping` or anything else at least this often.
   */
  pingIntervalSeconds: number;
}

export interface OkMessage {
  type: 'ok';
  /**
   * The `id` of the request that this answers.
   */
  replyTo?: string;
}

export interface ErrorMessage {
  type: 'error';
  /**
   * The `id` of the request that this answers.
   */
  replyTo?: string;
  code:
    | 'invalid_message'
    | 'invalid_sdp'
    | 'permission_denied'
    | 'media_unavailable'
    | 'not_found'
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
   * The `id` of the request that this answers.
   */
  replyTo?: string;
  sdp: string;
}

export interface OfferMessage {
  type: 'offer';
  offerId: number;
  sdp: string;
  /**
   * Which media section carries which track.
   */
  tracks: {
    participantId: string;
    /**
     * Unique within its session.
     */
    trackId: string;
    mid: string;
  }[];
}

export interface CandidateMessage {
  type: 'candidate';
  target: PeerTarget;
  candidate: Candidate;
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

export interface ParticipantJoinedMessage {
  type: 'participantJoined';
  participant: RemoteParticipant;
}

export interface ParticipantUpdatedMessage {
  type: 'participantUpdated';
  participant: RemoteParticipant;
}

export interface ParticipantLeftMessage {
  type: 'participantLeft';
  participantId: string;
  sessionId: string;
}

export interface TrackPublishedMessage {
  type: 'trackPublished';
  participantId: string;
  track: Track;
}

export interface TrackUnpublishedMessage {
  type: 'trackUnpublished';
  participantId: string;
  /**
   * Unique within its session.
   */
  trackId: string;
}

export interface TrackUpdatedMessage {
  type: 'trackUpdated';
  participantId: string;
  track: Track;
}

export interface MessageMessage {
  type: 'message';
  from: string;
  data: unknown;
  sentAt: string;
}

export interface IceServersMessage {
  type: 'iceServers';
  /**
   * The `id` of the request that this answers.
   */
  replyTo?: string;
  iceServers: IceServer[];
  iceServersExpireAt: string;
}

export interface PongMessage {
  type: 'pong';
  /**
   * The `id` of the request that this answers.
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
    | 'timeout';
  message: string;
  reconnect: 'no' | 'resume' | 'join';
}

export const SUBPROTOCOL = 'callplane.v1';
/** Every way in which the gateway ends a connection. */
export const CLOSE_REASONS = {
  left: { code: 4000, reconnect: 'no', message: 'You left.' },
  removed: { code: 4001, reconnect: 'no', message: 'You were removed from the room.' },
  room_ended: { code: 4002, reconnect: 'no', message: 'The room has ended.' },
  superseded: { code: 4003, reconnect: 'no', message: 'The participant has connected from elsewhere.' },
  token_expired: { code: 4004, reconnect: 'no', message: 'The token has expired; ask your backend for a new one.' },
  invalid_token: { code: 4005, reconnect: 'no', message: 'The token is not valid here.' },
  invalid_session: {
    code: 4006,
    reconnect: 'join',
    message: 'The session cannot be resumed: it has ended or is unknown.',
  },
  capacity: { code: 4007, reconnect: 'join', message: 'The room is full.' },
  media_unavailable: { code: 4008, reconnect: 'join', message: 'No media server can be reached.' },
  drain: { code: 4009, reconnect: 'resume', message: 'This instance stops; connect to another one.' },
  unavailable: { code: 4010, reconnect: 'resume', message: 'A dependency does not answer.' },
  protocol_error: { code: 4011, reconnect: 'no', message: 'The connection does not keep to the protocol.' },
  message_too_large: { code: 4012, reconnect: 'no', message: 'A frame is larger than the limit.' },
  rate_limited: { code: 4013, reconnect: 'resume', message: 'Too many messages.' },
  slow_consumer: { code: 4014, reconnect: 'resume', message: 'The connection does not keep up with what it is sent.' },
  timeout: { code: 4015, reconnect: 'resume', message: 'Nothing was heard for too long.' },
} as const;
export type CloseReason = keyof typeof CLOSE_REASONS;
/** Why the gateway refused a request. */
export const ERROR_CODES = {
  invalid_message: 'The message does not match its schema; `details` says where.',
  invalid_sdp: 'The session description cannot be used.',
  permission_denied: 'The token does not permit this.',
  media_unavailable: 'No media server can be reached at present; everything else works.',
  not_found: 'There is no such track or participant.',
  conflict: 'Out of order: what this refers to has been replaced or is under way.',
  payload_too_large: 'Data or metadata is too large.',
  rate_limited: 'Too many of these; slow down.',
  unavailable: 'A dependency does not answer; try again.',
} as const;
export type ErrorCode = keyof typeof ERROR_CODES;
