import { Type, type Static } from 'typebox';
import { CLOSE_REASONS, type CloseReason } from './close-reasons.js';
import { ERROR_CODES, type ErrorCode } from './error-codes.js';
import {
  Candidate,
  choice,
  IceServer,
  PeerTarget,
  RemoteParticipant,
  ResourceId,
  strict,
  Track,
  TrackId,
  TrackReference,
} from './shapes.js';

export const replyTo = {
  replyTo: Type.Optional(
    Type.String({ description: 'The `id` of the request that this message answers; absent if the request had none.' }),
  ),
};

/**
 * `down`: the room has no reachable media server at present. The gateway finds one by itself and then announces `up`,
 * followed by `mediaReset` if peer connections were lost.
 */
export const MediaState = choice(['up', 'down']);

/** Answers `join` and `resume`. */
export const Welcome = Type.Object(
  {
    type: Type.Literal('welcome'),
    ...replyTo,
    resumed: Type.Boolean(),
    sessionId: ResourceId,
    resumeSecret: Type.String({ description: 'Secret that resumes this session over another connection.' }),
    reconnectGraceSeconds: Type.Integer({ description: 'Time in which a lost connection can be resumed, in seconds.' }),
    /** The room in the shape that the HTTP API returns. */
    room: Type.Record(Type.String(), Type.Unknown()),
    participant: RemoteParticipant,
    participants: Type.Array(RemoteParticipant, { description: 'The other participants in the room.' }),
    permissions: Type.Array(Type.String()),
    iceServers: Type.Array(IceServer),
    iceServersExpireAt: Type.String(),
    media: Type.Object(
      {
        state: MediaState,
        continued: Type.Boolean({
          description:
            'Whether a resumed session keeps its peer connections. If false, create new ones and publish again.',
        }),
      },
      strict,
    ),
    pingIntervalSeconds: Type.Integer({ description: 'Send `ping` or any other message at least this often.' }),
  },
  strict,
);

/** Acknowledges a request that returns no data. */
export const Ok = Type.Object({ type: Type.Literal('ok'), ...replyTo }, strict);

/** Refuses a request. The connection stays open. */
export const RequestError = Type.Object(
  {
    type: Type.Literal('error'),
    ...replyTo,
    code: choice(Object.keys(ERROR_CODES) as ErrorCode[]),
    message: Type.String(),
    details: Type.Optional(Type.Array(Type.Object({ path: Type.String(), message: Type.String() }, strict))),
  },
  strict,
);

/** Answers `publish`. The other participants get `trackPublished` once the peer connection is up. */
export const Published = Type.Object({ type: Type.Literal('published'), ...replyTo, sdp: Type.String() }, strict);

/**
 * Offers the tracks that the subscriber receives from now on. The client replies with `answer` before the next offer. In
 * version 2, `subscribed` follows the answer, and says what is received.
 */
export const Offer = Type.Object(
  {
    type: Type.Literal('offer'),
    offerId: Type.Integer(),
    sdp: Type.String(),
    tracks: Type.Array(Type.Object({ ...TrackReference.properties, mid: Type.String() }, strict), {
      description: 'The offered tracks, each with the `mid` of its media section.',
    }),
  },
  strict,
);

export const ServerCandidate = Type.Object(
  { type: Type.Literal('candidate'), target: PeerTarget, candidate: Candidate },
  strict,
);

/** The media server lost these peer connections. The client closes them, creates new ones and publishes again. */
export const MediaReset = Type.Object(
  { type: Type.Literal('mediaReset'), targets: Type.Array(PeerTarget, { minItems: 1 }) },
  strict,
);

export const MediaStateChanged = Type.Object({ type: Type.Literal('mediaState'), state: MediaState }, strict);

export const ParticipantJoined = Type.Object(
  { type: Type.Literal('participantJoined'), participant: RemoteParticipant },
  strict,
);
/** The participant's name, external id, metadata or connection state has changed. */
export const ParticipantUpdated = Type.Object(
  { type: Type.Literal('participantUpdated'), participant: RemoteParticipant },
  strict,
);
export const ParticipantLeft = Type.Object(
  { type: Type.Literal('participantLeft'), participantId: ResourceId, sessionId: ResourceId },
  strict,
);
export const TrackPublished = Type.Object(
  { type: Type.Literal('trackPublished'), participantId: ResourceId, track: Track },
  strict,
);
export const TrackUnpublished = Type.Object(
  { type: Type.Literal('trackUnpublished'), participantId: ResourceId, trackId: TrackId },
  strict,
);
/** The publisher muted or unmuted the track. */
export const TrackUpdated = Type.Object(
  { type: Type.Literal('trackUpdated'), participantId: ResourceId, track: Track },
  strict,
);

export const ReceivedMessage = Type.Object(
  { type: Type.Literal('message'), from: ResourceId, data: Type.Unknown(), sentAt: Type.String() },
  strict,
);

/** Answers `iceServers`. */
export const IceServers = Type.Object(
  {
    type: Type.Literal('iceServers'),
    ...replyTo,
    iceServers: Type.Array(IceServer),
    iceServersExpireAt: Type.String(),
  },
  strict,
);

export const Pong = Type.Object({ type: Type.Literal('pong'), ...replyTo }, strict);

/** The last message before the gateway closes the connection. */
export const Closing = Type.Object(
  {
    type: Type.Literal('closing'),
    reason: choice(Object.keys(CLOSE_REASONS) as CloseReason[]),
    message: Type.String(),
    reconnect: choice(['no', 'resume', 'join']),
    retryAfterSeconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'Only with `too_many_attempts`: seconds to wait before connecting again.',
      }),
    ),
  },
  strict,
);

/** The schema of each server message of version 1, by its `type`. */
export const SERVER_MESSAGES = {
  welcome: Welcome,
  ok: Ok,
  error: RequestError,
  published: Published,
  offer: Offer,
  candidate: ServerCandidate,
  mediaReset: MediaReset,
  mediaState: MediaStateChanged,
  participantJoined: ParticipantJoined,
  participantUpdated: ParticipantUpdated,
  participantLeft: ParticipantLeft,
  trackPublished: TrackPublished,
  trackUnpublished: TrackUnpublished,
  trackUpdated: TrackUpdated,
  message: ReceivedMessage,
  iceServers: IceServers,
  pong: Pong,
  closing: Closing,
} as const;

export type ServerMessages = { [T in keyof typeof SERVER_MESSAGES]: Static<(typeof SERVER_MESSAGES)[T]> };
export type ServerMessage = ServerMessages[keyof ServerMessages];
