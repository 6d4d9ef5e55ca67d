import { Type, type Static } from 'typebox';
import { CLOSE_REASONS, ERROR_CODES, type CloseReason, type ErrorCode } from './codes.js';
import { PROTOCOL_LIMITS } from './limits.js';
import {
  ASK_FIELDS,
  choice,
  CREDIT_FIELDS,
  IceServer,
  message,
  object,
  PART_FIELDS,
  PeerTarget,
  QualityLevel,
  RemoteParticipant,
  REPLY_FIELDS,
  ResourceId,
  STREAM_FIELDS,
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
  viewerCount: count('Participants without tracks and without metadata.'),
};
const page = {
  participants: Type.Array(RemoteParticipant),
  next: Type.Union([ResourceId, Type.Null()], { description: '`cursor` of the next page; null on the last one.' }),
  ...counts,
};

const iceServers = {
  iceServers: Type.Array(IceServer),
  iceServersExpireAt: Type.String(),
  iceServersTtlSeconds: Type.Integer({
    description: 'Lifetime of the credentials, in seconds from now. The clock of a client may be wrong.',
  }),
};

/**
 * `down`: the room has no reachable media server at present. The gateway finds one by itself and then announces `up`,
 * followed by `mediaReset` if peer connections were lost.
 */
export const MediaState = choice(['up', 'down']);

const Room = Type.Record(Type.String(), Type.Unknown(), {
  description:
    'The room in the shape that the HTTP API returns. `recordingSince` is null, or since when it is recorded.',
});

/**
 * Answers `join` and `resume`. With `waiting`, the client is in the lobby, where it may only send `ping` and `leave`. A
 * second `welcome` without `waiting` follows once it is let in. Until then there are no others, permissions or ICE
 * servers, the room has only its id, name and encryption, and `participantCount` is the number of people in it.
 */
export const Welcome = message('welcome', {
  ...replyTo,
  waiting: Type.Optional(Type.Literal(true)),
  resumed: Type.Boolean(),
  sessionId: ResourceId,
  resumeSecret: Type.String({ description: 'Secret that resumes this session over another connection.' }),
  reconnectGraceSeconds: Type.Integer({ description: 'Time in which a lost connection can be resumed, in seconds.' }),
  room: Room,
  participant: RemoteParticipant,
  participants: Type.Array(RemoteParticipant, {
    description: 'The other participants: everyone, or in a paged room the first page, publishers first.',
  }),
  roster: object({
    paged: Type.Boolean({
      description: 'Whether viewers are only counted, and the roster is read in pages, because the room is large.',
    }),
    next: page.next,
    ...counts,
  }),
  permissions: Type.Array(Type.String()),
  ...iceServers,
  media: object({
    state: MediaState,
    continued: Type.Boolean({
      description: 'Whether a resumed session keeps its peer connections. If false, create new ones and publish again.',
    }),
  }),
  pingIntervalSeconds: Type.Integer({ description: 'Send `ping` or any other message at least this often.' }),
});

/** Acknowledges a request that returns no data. */
export const Ok = message('ok', replyTo);

/** Refuses a request. The connection stays open. */
export const RequestError = message('error', {
  ...replyTo,
  code: choice(Object.keys(ERROR_CODES) as ErrorCode[]),
  message: Type.String(),
  details: Type.Optional(Type.Array(object({ path: Type.String(), message: Type.String() }))),
});

/** Answers `publish`. The others learn of the tracks once the peer connection is up. */
export const Published = message('published', { ...replyTo, sdp: Type.String() });

/**
 * Offers the tracks that the subscriber receives from now on. The client replies with `answer` before the next offer.
 * `subscribed` follows the answer, and names the received tracks.
 */
export const Offer = message('offer', {
  offerId: Type.Integer(),
  sdp: Type.String(),
});

/** The media server lost these peer connections. The client closes them, creates new ones and publishes again. */
export const MediaReset = message('mediaReset', { targets: Type.Array(PeerTarget, { minItems: 1 }) });

export const MediaStateChanged = message('mediaState', { state: MediaState });

export const ReceivedMessage = message('message', { from: ResourceId, data: Type.Unknown(), sentAt: Type.String() });

/** A participant, or the `server`, asks for something. The client sends a `reply`. Delivered at most once. */
export const Asked = message('ask', { from: ResourceId, ...ASK_FIELDS, sentAt: Type.String() });

/** The reply of another participant. Ignore it unless its sender was asked. Delivered at most once. */
export const Replied = message('reply', { from: ResourceId, ...REPLY_FIELDS, sentAt: Type.String() });

/** A participant offers a stream. The client answers with a `credit`, and grants no more than it has room for. */
export const StreamOpened = message('stream', { from: ResourceId, ...STREAM_FIELDS, sentAt: Type.String() });

/** A part of a stream. Ignore it unless it begins where the last one has ended. */
export const PartReceived = message('part', { from: ResourceId, ...PART_FIELDS });

/** A participant takes more of a stream. Ignore it unless the stream was offered to it. */
export const CreditGiven = message('credit', { from: ResourceId, ...CREDIT_FIELDS });

/** Answers `iceServers` and `test`. */
export const IceServers = message('iceServers', {
  ...replyTo,
  ...iceServers,
});

export const Pong = message('pong', replyTo);

/** The last message before the gateway closes the connection. */
export const Closing = message('closing', {
  reason: choice(Object.keys(CLOSE_REASONS) as CloseReason[]),
  message: Type.String(),
  reconnect: choice(['no', 'resume', 'join']),
  retryAfterSeconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'Only with `too_many_attempts`: seconds to wait before connecting again.',
    }),
  ),
});

/** Answers `roster`. */
export const RosterPage = message('roster', { ...replyTo, ...page });

/** Answers `show`: the present state of those participants that are in the roster. Their later changes follow. */
export const Shown = message('shown', { ...replyTo, participants: Type.Array(RemoteParticipant) });

/** One change of a participant that the client shows. */
export const Change = Type.Union([
  object({ kind: Type.Literal('participant'), participant: RemoteParticipant }),
  object({
    kind: Type.Literal('tracks'),
    participantId: ResourceId,
    sessionId: ResourceId,
    tracks: Type.Array(Track, { description: 'All tracks of the participant from now on.' }),
  }),
  object({ kind: Type.Literal('left'), participantId: ResourceId, sessionId: ResourceId }),
  object({ kind: Type.Literal('hidden'), participantId: ResourceId, sessionId: ResourceId }),
]);
export type Change = Static<typeof Change>;

/**
 * Changes of the participants that the client shows, in order. `participant`: new, or its whole changed state. `tracks`:
 * only its tracks changed. `left`: it left the room. `hidden`: it is in the room but no longer shown. The client itself
 * may be among them, and skips that entry.
 */
export const Changes = message('changes', { changes: Type.Array(Change, { minItems: 1 }) });

/** The number of participants of a paged room changed. At most once a second. */
export const ViewerCount = message('viewerCount', counts);

/** The room has become paged. This first page replaces the client's roster. */
export const RosterPaged = message('rosterPaged', page);

/**
 * The server has changed the permissions of the client: these are all of them. Tracks without permission are
 * unpublished already. New permissions need no new token.
 */
export const Permissions = message('permissions', { permissions: Type.Array(Type.String()) });

/**
 * The server has changed the name, the metadata or the capacity of the room, or a recording has started or stopped
 * (`recordingSince`). At most once a second.
 */
export const RoomUpdated = message('roomUpdated', { room: Room });

/**
 * The quality that shown participants report. After a welcome: participants that report less than `good`. Later: the
 * levels that changed, at most once a second. Nothing is known of participants that never reported.
 */
export const Quality = message('quality', {
  participants: Type.Array(object({ participantId: ResourceId, level: QualityLevel }), { minItems: 1 }),
});

/**
 * All tracks that the client receives from now on, each with the `mid` of its media section. It follows each accepted
 * `answer`, and each change that needs no offer: a section may carry another track than before.
 */
export const Subscribed = message('subscribed', {
  tracks: Type.Array(object({ ...TrackReference.properties, mid: Type.String() }), {
    maxItems: PROTOCOL_LIMITS.videoSectionsMax + PROTOCOL_LIMITS.audioSectionsMax,
  }),
});

/**
 * Tracks that the client should receive, but does not. `too_many_tracks`: all media sections carry other tracks.
 * `not_found`: the media server does not have it. `track_refused`: the client's answer refused its media section. The
 * gateway sends `subscribed` if it can be received later.
 */
export const SubscriptionFailed = message('subscriptionFailed', {
  tracks: Type.Array(
    object({
      ...TrackReference.properties,
      code: choice(Object.keys(ERROR_CODES) as ErrorCode[]),
      message: Type.String(),
    }),
    { minItems: 1 },
  ),
});

/** Participants who speak at this moment, the loudest first: all of them, or the loudest 20. */
export const Speakers = message('speakers', {
  speakers: Type.Array(
    object({
      participantId: ResourceId,
      level: Type.Number({ minimum: 0, maximum: 1, description: 'Amplitude when the participant began to speak.' }),
    }),
    { maxItems: PROTOCOL_LIMITS.speakersMax },
  ),
});

/**
 * How much of the client's own video is received: all of its video tracks. After a welcome and a publication, and when it
 * changes. A client may ignore it, or save the other encodings.
 */
export const LayersWanted = message('layersWanted', {
  tracks: Type.Array(
    object({
      trackId: TrackId,
      layers: Type.Array(Type.Integer({ minimum: 0, maximum: 2 }), {
        maxItems: 3,
        description:
          'The simulcast layers that are received, 0 being the lowest. Of a track that has fewer layers, the highest one stands for those above it.',
      }),
    }),
    { minItems: 1, maxItems: PROTOCOL_LIMITS.tracksMax },
  ),
});

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
  ask: Asked,
  reply: Replied,
  stream: StreamOpened,
  part: PartReceived,
  credit: CreditGiven,
  iceServers: IceServers,
  pong: Pong,
  closing: Closing,
} as const;

export type ServerMessages = { [T in keyof typeof SERVER_MESSAGES]: Static<(typeof SERVER_MESSAGES)[T]> };
export type ServerMessage = ServerMessages[keyof ServerMessages];
