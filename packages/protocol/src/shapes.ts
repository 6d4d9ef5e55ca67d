import { Type, type Static } from 'typebox';
import { PROTOCOL_LIMITS } from './limits.js';

const strict = { additionalProperties: false } as const;
/** One of these words. A plain `enum`: a union of literals, made of a list, has no static type. */
const choice = <const T extends string>(values: readonly T[], options: { description?: string } = {}) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], ...options });
const Id = Type.String({ pattern: '^[A-Za-z0-9_-]{1,128}$' });

/** What a track shows. A browser's SDP does not tell a camera from a screen: this is the publisher's word. */
export const TRACK_SOURCES = ['microphone', 'camera', 'screen', 'screen_audio'] as const;
export const TrackSource = choice(TRACK_SOURCES, { description: 'What the track shows.' });
export type TrackSource = (typeof TRACK_SOURCES)[number];

export const TRACK_KINDS = ['audio', 'video'] as const;
export const TrackKind = choice(TRACK_KINDS);
export type TrackKind = (typeof TRACK_KINDS)[number];

/** Chosen by the publisher, unique within its session; it stays the same when the track is published again. */
export const TrackId = Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', description: 'Unique within its session.' });

/** A published track, as others see it. */
export const Track = Type.Object(
  {
    trackId: TrackId,
    kind: TrackKind,
    source: TrackSource,
    muted: Type.Boolean({ description: 'Whether the publisher sends nothing on it at present.' }),
  },
  strict,
);
export type Track = Static<typeof Track>;

/** Somebody in the room. */
export const RemoteParticipant = Type.Object(
  {
    participantId: Id,
    sessionId: Id,
    name: Type.String(),
    externalId: Type.Union([Type.String(), Type.Null()]),
    metadata: Type.Record(Type.String(), Type.Unknown()),
    joinedAt: Type.String({ description: 'Start of the session, ISO 8601, UTC.' }),
    connected: Type.Boolean({ description: 'False within the grace period after its connection was lost.' }),
    tracks: Type.Array(Track),
  },
  strict,
);
export type RemoteParticipant = Static<typeof RemoteParticipant>;

/** Names a track of another participant. */
export const TrackReference = Type.Object({ participantId: Id, trackId: TrackId }, strict);
export type TrackReference = Static<typeof TrackReference>;

/** Simulcast (spatial) and frame-rate (temporal) layer; 0 is the lowest. */
export const Layer = Type.Object(
  {
    spatial: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 })),
    temporal: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 })),
  },
  strict,
);
export type Layer = Static<typeof Layer>;

/** `RTCIceCandidateInit`; null ends the candidates of that connection. */
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

/** Each participant has two peer connections: one that sends (it offers), one that receives (the gateway offers). */
export const PeerTarget = choice(['publisher', 'subscriber']);
export type PeerTarget = Static<typeof PeerTarget>;

export const Sdp = Type.String({ minLength: 1, maxLength: PROTOCOL_LIMITS.sdpCharsMax });

export const IceServer = Type.Object({
  urls: Type.Array(Type.String()),
  username: Type.Optional(Type.String()),
  credential: Type.Optional(Type.String()),
  credentialType: Type.Optional(Type.Literal('password')),
});
export type IceServer = Static<typeof IceServer>;

export { choice, Id as ResourceId, strict };
