import { Type, type Static, type TProperties } from 'typebox';
import { PROTOCOL_LIMITS } from './limits.js';

/** An object without further properties. */
export const object = <P extends TProperties>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });
/** A message that is told from the others by its `type`. */
export const message = <T extends string, P extends TProperties>(type: T, properties: P) =>
  object({ type: Type.Literal(type), ...properties });
/** A string `enum` with a static type. TypeBox derives none from a union of literals that is built from a list. */
const choice = <const T extends string>(values: readonly T[], options: { description?: string } = {}) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], ...options });
const Id = Type.String({ pattern: '^[A-Za-z0-9_-]{1,128}$' });

/** The source of a track. The publisher declares it, because a browser's SDP does not tell a camera from a screen. */
export const TRACK_SOURCES = ['microphone', 'camera', 'screen', 'screen_audio'] as const;
export const TrackSource = choice(TRACK_SOURCES, {
  description: 'The source of the track, as the publisher declares it.',
});
export type TrackSource = (typeof TRACK_SOURCES)[number];

export const TRACK_KINDS = ['audio', 'video'] as const;
export const TrackKind = choice(TRACK_KINDS);
export type TrackKind = (typeof TRACK_KINDS)[number];

/** The publisher chooses the id. A track that is published again keeps it. */
export const TrackId = Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', description: 'Unique within the session.' });

/** A published track, as the other participants see it. */
export const Track = object({
  trackId: TrackId,
  kind: TrackKind,
  source: TrackSource,
  muted: Type.Boolean({
    description:
      'Whether the publisher or the server has muted the track. The media server does not relay its media then.',
  }),
});
export type Track = Static<typeof Track>;

/** A participant in the room. */
export const RemoteParticipant = object({
  participantId: Id,
  sessionId: Id,
  name: Type.String(),
  externalId: Type.Union([Type.String(), Type.Null()]),
  role: Type.Optional(Type.String({ description: 'The role of the token request. Absent: `participant`.' })),
  metadata: Type.Record(Type.String(), Type.Unknown()),
  joinedAt: Type.String({ description: 'Start of the session, ISO 8601, UTC.' }),
  connected: Type.Boolean({ description: 'False during the grace period after the connection was lost.' }),
  tracks: Type.Array(Track),
});
export type RemoteParticipant = Static<typeof RemoteParticipant>;

/** Refers to a track of another participant. */
export const TrackReference = object({ participantId: Id, trackId: TrackId });
export type TrackReference = Static<typeof TrackReference>;

/** Simulcast layer (spatial) and frame-rate layer (temporal); 0 is the lowest. */
export const Layer = object({
  spatial: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 })),
  temporal: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 })),
});
export type Layer = Static<typeof Layer>;

/** `RTCIceCandidateInit`; null signals the end of candidates for that peer connection. */
export const Candidate = Type.Union([
  Type.Object({
    candidate: Type.String({ maxLength: 2048 }),
    sdpMid: Type.Optional(Type.Union([Type.String({ maxLength: 64 }), Type.Null()])),
    sdpMLineIndex: Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: 1000 }), Type.Null()])),
    usernameFragment: Type.Optional(Type.Union([Type.String({ maxLength: 256 }), Type.Null()])),
  }),
  Type.Null(),
]);
export type Candidate = Static<typeof Candidate>;

/**
 * Each session has two peer connections. The client sends and offers on `publisher`; it receives on `subscriber`, where
 * the gateway offers.
 */
export const PeerTarget = choice(['publisher', 'subscriber']);
export type PeerTarget = Static<typeof PeerTarget>;

/** How well the media of a session works, from best to worst. */
export const QualityLevel = choice(['good', 'fair', 'poor', 'lost']);
export type QualityLevel = Static<typeof QualityLevel>;

/** The client that asks chooses it at random. */
const AskId = Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', description: 'Unique among the asks of the sender.' });
export const ASK_FIELDS = {
  askId: AskId,
  method: Type.String({ pattern: '^[$]?[A-Za-z0-9_.:/-]{1,64}$', description: 'Names with `$` belong to the SDK.' }),
  payload: Type.Unknown({ description: 'Any JSON value.' }),
};

/**
 * `no_handler`: nothing at the participant handles the method. `handler_failed`: its handler has thrown; the payload is
 * the text of the error. `response_too_large`: the result of the handler does not fit into a reply.
 */
const ReplyFailure = choice(['no_handler', 'handler_failed', 'response_too_large']);
export const REPLY_FIELDS = {
  askId: AskId,
  payload: Type.Unknown({ description: 'Any JSON value.' }),
  failure: Type.Optional(ReplyFailure),
};

const STREAM_BYTES_MAX = 16 * 1024 * 1024;

/** The sender of a stream chooses it at random. */
const StreamId = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: 'Unique among the streams of the sender.',
});
const Offset = Type.Integer({ minimum: 0, maximum: STREAM_BYTES_MAX });
export const STREAM_FIELDS = { streamId: StreamId, method: ASK_FIELDS.method, payload: ASK_FIELDS.payload };
export const PART_FIELDS = {
  streamId: StreamId,
  offset: Type.Integer({
    ...Offset,
    description: 'Bytes of the stream before this part, as they were before encryption.',
  }),
  data: Type.String({
    pattern: '^[A-Za-z0-9+/]*={0,2}$',
    // No maxLength: to count the characters of each part took two thirds of the gateway's work for streams (measured).
    description: `Base64, at most ${PROTOCOL_LIMITS.messageBytesMax} characters. Empty: the receiver repeats its last \`credit\`.`,
  }),
  last: Type.Optional(Type.Boolean({ description: 'Whether the stream ends with this part.' })),
  aborted: Type.Optional(Type.Boolean({ description: 'Whether the sender gives the stream up.' })),
};

/**
 * `no_handler`: nothing at the participant handles the method. `handler_failed`: its handler has thrown.
 * `stream_cancelled`: it wants no more. `stream_unread`: it reads nothing. `stream_unknown`: it has no such stream.
 * `stream_invalid`: the stream has more or fewer bytes than its sender said. `too_many_streams`: it receives too many.
 * `undecryptable`: a part has another key.
 */
const StreamFailure = choice([
  'no_handler',
  'handler_failed',
  'stream_cancelled',
  'stream_unread',
  'stream_unknown',
  'stream_invalid',
  'too_many_streams',
  'undecryptable',
]);
export const CREDIT_FIELDS = {
  streamId: StreamId,
  received: Type.Integer({ ...Offset, description: 'Bytes that have arrived in order.' }),
  limit: Type.Integer({
    minimum: 0,
    maximum: 2 * STREAM_BYTES_MAX,
    description: 'Bytes that the participant takes, counted from the start of the stream.',
  }),
  done: Type.Optional(Type.Boolean({ description: 'Whether all has arrived.' })),
  failure: Type.Optional(StreamFailure),
};

/** The gateway's check of descriptions has its bounds, without counting characters as JSON schemas do. */
export const Sdp = Type.String({
  description: `At most ${PROTOCOL_LIMITS.sdpCharsMax} printable ASCII characters, and line ends.`,
});

export const IceServer = Type.Object({
  urls: Type.Array(Type.String()),
  username: Type.Optional(Type.String()),
  credential: Type.Optional(Type.String()),
  credentialType: Type.Optional(Type.Literal('password')),
});
export type IceServer = Static<typeof IceServer>;

export { choice, Id as ResourceId };
