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

/** The `id` of the request that this answers; absent when it had none. */
const replyTo = { replyTo: Type.Optional(Type.String({ description: 'The `id` of the request that this answers.' })) };

/** `down`: the room has no media server at present; it comes back by itself, with a `mediaReset`. */
export const MediaState = choice(['up', 'down']);

/** The answer to `join` and `resume`. */
export const Welcome = Type.Object(
  {
    type: Type.Literal('welcome'),
    ...replyTo,
    resumed: Type.Boolean(),
    sessionId: ResourceId,
    resumeSecret: Type.String({ description: 'Lets this session go on over another connection; keep it secret.' }),
    reconnectGraceSeconds: Type.Integer({ description: 'How long the session outlives a lost connection.' }),
    /** The room as the API returns it. */
    room: Type.Record(Type.String(), Type.Unknown()),
    participant: RemoteParticipant,
    participants: Type.Array(RemoteParticipant, { description: 'The others.' }),
    permissions: Type.Array(Type.String()),
    iceServers: Type.Array(IceServer),
    iceServersExpireAt: Type.String(),
    media: Type.Object(
      {
        state: MediaState,
        continued: Type.Boolean({
          description: 'After a resume: the peer connections are still good. False: make new ones and publish again.',
        }),
      },
      strict,
    ),
    pingIntervalSeconds: Type.Integer({ description: 'Send `ping` or anything else at least this often.' }),
  },
  strict,
);

/** A request was carried out and has nothing to return. */
export const Ok = Type.Object({ type: Type.Literal('ok'), ...replyTo }, strict);

/** A request was refused. */
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

/** The answer to `publish`. The tracks are announced to the others once media flows. */
export const Published = Type.Object({ type: Type.Literal('published'), ...replyTo, sdp: Type.String() }, strict);

/** What the subscriber connection is to receive from now on: answer it with `answer`. One is outstanding at a time. */
export const Offer = Type.Object(
  {
    type: Type.Literal('offer'),
    offerId: Type.Integer(),
    sdp: Type.String(),
    tracks: Type.Array(Type.Object({ ...TrackReference.properties, mid: Type.String() }, strict), {
      description: 'Which media section carries which track.',
    }),
  },
  strict,
);

export const ServerCandidate = Type.Object(
  { type: Type.Literal('candidate'), target: PeerTarget, candidate: Candidate },
  strict,
);

/** The media server lost these peer connections: close them, make new ones; publish again what was published. */
export const MediaReset = Type.Object(
  { type: Type.Literal('mediaReset'), targets: Type.Array(PeerTarget, { minItems: 1 }) },
  strict,
);

export const MediaStateChanged = Type.Object({ type: Type.Literal('mediaState'), state: MediaState }, strict);

export const ParticipantJoined = Type.Object(
  { type: Type.Literal('participantJoined'), participant: RemoteParticipant },
  strict,
);
/** Its metadata, or whether it is connected, has changed. */
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
/** Muted or unmuted. */
export const TrackUpdated = Type.Object(
  { type: Type.Literal('trackUpdated'), participantId: ResourceId, track: Track },
  strict,
);

export const ReceivedMessage = Type.Object(
  { type: Type.Literal('message'), from: ResourceId, data: Type.Unknown(), sentAt: Type.String() },
  strict,
);

/** The answer to `iceServers`. */
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
  },
  strict,
);

/** By `type`. */
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
