import { Type, type Static } from 'typebox';
import { CLOSE_REASONS, ERROR_CODES, type CloseReason, type ErrorCode } from './codes.js';
import { PROTOCOL_LIMITS } from './limits.js';
import {
  choice,
  IceServer,
  PeerTarget,
  QualityLevel,
  RemoteParticipant,
  ResourceId,
  strict,
  Track,
  TrackId,
  TrackReference,
} from './shapes.js';

const replyTo = {
  replyTo: Type.Optional(
    Type.String({ description: 'The `id` of the request that this message answers; absent if the request had none.' }),
  ),
};

const count = (description: string) => Type.Integer({ minimum: 0, description });
const counts = {
  participantCount: count('Everyone in the room, viewers and the client included.'),
  viewerCount: count('Those among them without tracks and without metadata.'),
};
const page = {
  participants: Type.Array(RemoteParticipant),
  next: Type.Union([ResourceId, Type.Null()], { description: '`cursor` of the next page; null on the last one.' }),
  ...counts,
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
    participants: Type.Array(RemoteParticipant, {
      description: 'The other participants: everyone, or in a paged room the first page, publishers first.',
    }),
    roster: Type.Object(
      {
        paged: Type.Boolean({
          description: 'Whether viewers are only counted, and the roster is read in pages, because the room is large.',
        }),
        next: page.next,
        ...counts,
      },
      strict,
    ),
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

/** Answers `publish`. The others learn of the tracks once the peer connection is up. */
export const Published = Type.Object({ type: Type.Literal('published'), ...replyTo, sdp: Type.String() }, strict);

/**
 * Offers the tracks that the subscriber receives from now on. The client replies with `answer` before the next offer.
 * `subscribed` follows the answer, and says what is received.
 */
export const Offer = Type.Object(
  {
    type: Type.Literal('offer'),
    offerId: Type.Integer(),
    sdp: Type.String(),
  },
  strict,
);

/** The media server lost these peer connections. The client closes them, creates new ones and publishes again. */
export const MediaReset = Type.Object(
  { type: Type.Literal('mediaReset'), targets: Type.Array(PeerTarget, { minItems: 1 }) },
  strict,
);

export const MediaStateChanged = Type.Object({ type: Type.Literal('mediaState'), state: MediaState }, strict);

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

/** Answers `roster`. */
export const RosterPage = Type.Object({ type: Type.Literal('roster'), ...replyTo, ...page }, strict);

/** Answers `show`: the present state of those participants that are in the roster. Their later changes follow. */
export const Shown = Type.Object(
  { type: Type.Literal('shown'), ...replyTo, participants: Type.Array(RemoteParticipant) },
  strict,
);

/** One change of a participant that the client shows. */
export const Change = Type.Union([
  Type.Object({ kind: Type.Literal('participant'), participant: RemoteParticipant }, strict),
  Type.Object(
    {
      kind: Type.Literal('tracks'),
      participantId: ResourceId,
      sessionId: ResourceId,
      tracks: Type.Array(Track, { description: 'All tracks of the participant from now on.' }),
    },
    strict,
  ),
  Type.Object({ kind: Type.Literal('left'), participantId: ResourceId, sessionId: ResourceId }, strict),
  Type.Object({ kind: Type.Literal('hidden'), participantId: ResourceId, sessionId: ResourceId }, strict),
]);
export type Change = Static<typeof Change>;

/**
 * Changes of the participants that the client shows, in order. `participant`: new, or its whole changed state. `tracks`:
 * only its tracks changed. `left`: it left the room. `hidden`: it is in the room but no longer shown. The client itself
 * may be among them, and skips that entry.
 */
export const Changes = Type.Object(
  { type: Type.Literal('changes'), changes: Type.Array(Change, { minItems: 1 }) },
  strict,
);

/** The number of participants of a paged room changed. At most once a second. */
export const ViewerCount = Type.Object({ type: Type.Literal('viewerCount'), ...counts }, strict);

/** The room has become paged. This first page replaces the client's roster. */
export const RosterPaged = Type.Object({ type: Type.Literal('rosterPaged'), ...page }, strict);

/**
 * The server has changed the permissions of the client: these are all of them. Tracks without permission are
 * unpublished already. New permissions need no new token.
 */
export const Permissions = Type.Object(
  { type: Type.Literal('permissions'), permissions: Type.Array(Type.String()) },
  strict,
);

/** The server has changed the name, the metadata or the capacity of the room. At most once a second. */
export const RoomUpdated = Type.Object(
  { type: Type.Literal('roomUpdated'), room: Type.Record(Type.String(), Type.Unknown()) },
  strict,
);

/**
 * The quality that others report whom the client shows. After a welcome: those who report less than `good`. Later: the
 * levels that changed, at most once a second. Nothing is known of participants that never reported.
 */
export const Quality = Type.Object(
  {
    type: Type.Literal('quality'),
    participants: Type.Array(Type.Object({ participantId: ResourceId, level: QualityLevel }, strict), { minItems: 1 }),
  },
  strict,
);

/**
 * All tracks that the client receives from now on, each with the `mid` of its media section. It follows each accepted
 * `answer`, and each change that needs no offer: a section may carry another track than before.
 */
export const Subscribed = Type.Object(
  {
    type: Type.Literal('subscribed'),
    tracks: Type.Array(Type.Object({ ...TrackReference.properties, mid: Type.String() }, strict), {
      maxItems: PROTOCOL_LIMITS.videoSectionsMax + PROTOCOL_LIMITS.audioSectionsMax,
    }),
  },
  strict,
);

/**
 * Tracks that the client should receive, but does not. `too_many_tracks`: all media sections carry other tracks.
 * `not_found`: the media server does not have it. `track_refused`: the client's answer refused its media section. The
 * gateway sends `subscribed` if it can be received later.
 */
export const SubscriptionFailed = Type.Object(
  {
    type: Type.Literal('subscriptionFailed'),
    tracks: Type.Array(
      Type.Object(
        {
          ...TrackReference.properties,
          code: choice(Object.keys(ERROR_CODES) as ErrorCode[]),
          message: Type.String(),
        },
        strict,
      ),
      { minItems: 1 },
    ),
  },
  strict,
);

/** Those who speak at this moment, the loudest first: all of them, or the loudest 20. */
export const Speakers = Type.Object(
  {
    type: Type.Literal('speakers'),
    speakers: Type.Array(
      Type.Object(
        {
          participantId: ResourceId,
          level: Type.Number({ minimum: 0, maximum: 1, description: 'Amplitude when the participant began to speak.' }),
        },
        strict,
      ),
      { maxItems: PROTOCOL_LIMITS.speakersMax },
    ),
  },
  strict,
);

/**
 * How much of the client's own video is received: all of its video tracks. After a welcome and a publication, and when it
 * changes. A client may ignore it, or save the other encodings.
 */
export const LayersWanted = Type.Object(
  {
    type: Type.Literal('layersWanted'),
    tracks: Type.Array(
      Type.Object(
        {
          trackId: TrackId,
          layers: Type.Array(Type.Integer({ minimum: 0, maximum: 2 }), {
            maxItems: 3,
            description:
              'The simulcast layers that are received, 0 being the lowest. Of a track that has fewer layers, the highest one stands for those above it.',
          }),
        },
        strict,
      ),
      { minItems: 1, maxItems: PROTOCOL_LIMITS.tracksMax },
    ),
  },
  strict,
);

/** The schema of each server message, by its `type`. */
export const SERVER_MESSAGES = {
  welcome: Welcome,
  ok: Ok,
  error: RequestError,
  published: Published,
  offer: Offer,
  subscribed: Subscribed,
  subscriptionFailed: SubscriptionFailed,
  mediaReset: MediaReset,
  mediaState: MediaStateChanged,
  changes: Changes,
  viewerCount: ViewerCount,
  rosterPaged: RosterPaged,
  roster: RosterPage,
  shown: Shown,
  permissions: Permissions,
  roomUpdated: RoomUpdated,
  quality: Quality,
  speakers: Speakers,
  layersWanted: LayersWanted,
  message: ReceivedMessage,
  iceServers: IceServers,
  pong: Pong,
  closing: Closing,
} as const;

export type ServerMessages = { [T in keyof typeof SERVER_MESSAGES]: Static<(typeof SERVER_MESSAGES)[T]> };
export type ServerMessage = ServerMessages[keyof ServerMessages];
