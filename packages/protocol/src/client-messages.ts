import { Type, type Static, type TProperties } from 'typebox';
import { PROTOCOL_LIMITS } from './limits.js';
import {
  ASK_FIELDS,
  Candidate,
  CREDIT_FIELDS,
  Layer,
  message,
  object,
  PART_FIELDS,
  PeerTarget,
  QualityLevel,
  REPLY_FIELDS,
  ResourceId,
  Sdp,
  STREAM_FIELDS,
  TrackId,
  TrackReference,
  TrackSource,
} from './shapes.js';

const requestId = Type.Optional(
  Type.String({ minLength: 1, maxLength: 64, description: 'The answer repeats it as `replyTo`.' }),
);
const request = <T extends string, P extends TProperties>(type: T, properties: P) =>
  message(type, { id: requestId, ...properties });

/** First message of a new session. It carries the token, because proxies log URLs. */
export const Join = request('join', {
  token: Type.String({ minLength: 1, maxLength: 8192, description: 'Participant token (JWT).' }),
  autoSubscribe: Type.Optional(
    Type.Boolean({ description: 'Whether to subscribe to every track automatically; default true.' }),
  ),
  requireMedia: Type.Optional(
    Type.Boolean({
      description: 'Whether to refuse the join with `media_unavailable` if no media server is up; default false.',
    }),
  ),
});

/**
 * First and only message of a connection that tests the line: answered by `iceServers`, whose credentials last a minute.
 * Nobody joins, and the gateway closes the connection with `left`.
 */
export const TestLine = request('test', { token: Join.properties.token });

/** First message of a connection that resumes a session whose previous connection was lost. */
export const Resume = request('resume', {
  /** Without it, many resumptions of a room take longer. */
  roomId: Type.Optional(ResourceId),
  sessionId: ResourceId,
  resumeSecret: Type.String({ minLength: 1, maxLength: 256 }),
  autoSubscribe: Type.Optional(Type.Boolean({ description: 'As in `join`; default true.' })),
  continueMedia: Type.Optional(
    Type.Boolean({
      description: 'False if the client has lost its peer connections, for example by a page reload; default true.',
    }),
  ),
  offerId: Type.Optional(
    Type.Integer({
      minimum: 0,
      description:
        '`offerId` of the last `offer` that the client has answered over its present receiving connection. A gateway may ignore it.',
    }),
  ),
  peers: Type.Optional(
    Type.Array(PeerTarget, {
      maxItems: 2,
      uniqueItems: true,
      description:
        'The peer connections that the client has. Another gateway resets only these. Without the field, it takes both for present.',
    }),
  ),
});

/** Offers every track that the session publishes from now on. The gateway unpublishes tracks that are missing here. */
export const Publish = request('publish', {
  sdp: Sdp,
  tracks: Type.Array(
    object({
      trackId: TrackId,
      mid: Type.String({
        minLength: 1,
        maxLength: 64,
        description: '`mid` of the media section for the track in the offer.',
      }),
      source: TrackSource,
      muted: Type.Optional(Type.Boolean()),
    }),
    { maxItems: PROTOCOL_LIMITS.tracksMax },
  ),
  encrypted: Type.Optional(
    Type.Boolean({
      description:
        'Whether the client encrypts every frame of the tracks end to end; default false. A room with `encryption: required` takes no other tracks.',
    }),
  ),
});

/** Unpublishes all tracks and closes the publisher's peer connection. */
export const Unpublish = request('unpublish', {});

export const Mute = request('mute', { trackId: TrackId, muted: Type.Boolean() });

/**
 * Chooses tracks to receive, and how. A choice lasts until `unsubscribe`. `subscribed` names the received tracks, at
 * most 25 video and 8 audio tracks. Of the video tracks, tracks that are not paused come first; of the audio tracks,
 * the loudest. A track that finds no place is reported with `subscriptionFailed`, and is received as soon as it can be.
 */
export const Subscribe = request('subscribe', {
  tracks: Type.Array(
    object({
      ...TrackReference.properties,
      layer: Type.Optional(Layer),
      paused: Type.Optional(
        Type.Boolean({
          description:
            'Whether nothing is sent for now, for example because the track is not visible; default false. A paused track loses its place to one that is not paused.',
        }),
      ),
    }),
    { minItems: 1, maxItems: PROTOCOL_LIMITS.subscriptionsMax },
  ),
});

export const Unsubscribe = request('unsubscribe', {
  tracks: Type.Array(TrackReference, { minItems: 1, maxItems: PROTOCOL_LIMITS.subscriptionsMax }),
});

/** Answers the gateway's latest `offer`. */
export const Answer = request('answer', { offerId: Type.Integer(), sdp: Sdp });

export const ClientCandidate = request('candidate', { target: PeerTarget, candidate: Candidate });

/**
 * Says that the client closed these peer connections because they failed on its side. The gateway closes them, too. For
 * the subscriber, a new `offer` follows; for the publisher, the client sends `publish` again.
 */
export const ResetMedia = request('resetMedia', { targets: Type.Array(PeerTarget, { minItems: 1, maxItems: 2 }) });

const Recipients = Type.Array(ResourceId, {
  minItems: 1,
  maxItems: PROTOCOL_LIMITS.recipientsMax,
  uniqueItems: true,
});

/** Sends data to all other participants in the room, or to those in `to`. Needs the permission `messages:send`. */
export const SendMessage = request('message', {
  data: Type.Unknown({ description: 'Any JSON value.' }),
  to: Type.Optional(Recipients),
});

/**
 * Asks participants for something. The `reply` of each repeats `askId`. Lost asks and replies are not sent again: a
 * client that asks needs a deadline. Needs the permission `messages:send`.
 */
export const Ask = request('ask', { to: Recipients, ...ASK_FIELDS });

/** Answers an `ask`. Needs the permission `messages:send`, unless the `server` has asked. */
export const Reply = request('reply', { to: ResourceId, ...REPLY_FIELDS });

/**
 * Offers a stream of bytes to participants. Each answers with a `credit`, after which `part`s follow. Needs the
 * permission `messages:send`.
 */
export const OpenStream = request('stream', { to: Recipients, ...STREAM_FIELDS });

/**
 * Sends a part of a stream to participants. A part may be lost, and is sent again if no `credit` confirms it. The answer
 * comes later if the connection or the environment sends much: send no ninth part before it. Needs the permission
 * `messages:send`, unless it only says `aborted`.
 */
export const SendPart = request('part', { to: Recipients, ...PART_FIELDS });

/** Lets the sender of a stream send more, or says why nothing more is wanted. Needs no permission. */
export const GiveCredit = request('credit', { to: ResourceId, ...CREDIT_FIELDS });

/** Replaces the metadata of the client's own participant. Needs the permission `metadata:update`. */
export const UpdateMetadata = request('metadata', { metadata: Type.Record(Type.String(), Type.Unknown()) });

/**
 * Requests fresh ICE servers. With `target` they are for the next ICE restart of this peer connection: its relays have
 * a quota of their own, and relays of all its earlier requests but the last one are closed.
 */
export const RequestIceServers = request('iceServers', { target: Type.Optional(PeerTarget) });

export const Ping = request('ping', {});

/** Ends the session at once. The gateway closes the connection with the reason `left`. */
export const Leave = request('leave', {});

/** Requests a page of the room's roster: all participants except viewers, in order of their session ids. */
export const RequestRoster = request('roster', {
  cursor: Type.Optional(ResourceId),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PROTOCOL_LIMITS.rosterPageMax,
      description: 'Participants on the page at most; default 50.',
    }),
  ),
});

/**
 * In a paged room: requests the changes of these participants from now on. Replaces the list of the previous `show`. In
 * a room that is not paged everyone is shown; the list takes effect if the room becomes paged.
 */
export const Show = request('show', {
  participantIds: Type.Array(ResourceId, { maxItems: PROTOCOL_LIMITS.shownMax, uniqueItems: true }),
  publishers: Type.Optional(
    Type.Boolean({ description: 'Whether to show the first 100 publishers, too; default true.' }),
  ),
});

/**
 * Reports how well the client sends and receives, whichever is worse. Send it when the level or the relay changes, at
 * most once in 2 s. Needs no permission.
 */
export const ReportQuality = request('quality', {
  level: QualityLevel,
  lossPercent: Type.Optional(Type.Number({ minimum: 0, maximum: 100 })),
  roundTripMs: Type.Optional(Type.Number({ minimum: 0, maximum: 60_000 })),
  jitterMs: Type.Optional(Type.Number({ minimum: 0, maximum: 60_000 })),
  relay: Type.Optional(Type.Boolean({ description: 'Whether media goes through a TURN server; default false.' })),
});

/**
 * Requests new ICE credentials for the receiving connection, because no media arrives over its present path. An `offer`
 * follows that keeps all media sections. For the sending connection, `publish` an offer with an ICE restart.
 */
export const RestartIce = request('restartIce', {});

/**
 * Requests key frames, because the path of these peer connections was interrupted and works again: of the client's own
 * video for its receivers (`publisher`), and of all video that it receives (`subscriber`). At most once in 2 s.
 */
export const RefreshVideo = request('refreshVideo', { targets: Type.Array(PeerTarget, { minItems: 1, maxItems: 2 }) });

/** The schema of each client message, by its `type`. */
export const CLIENT_MESSAGES = {
  join: Join,
  test: TestLine,
  resume: Resume,
  publish: Publish,
  unpublish: Unpublish,
  mute: Mute,
  subscribe: Subscribe,
  unsubscribe: Unsubscribe,
  answer: Answer,
  candidate: ClientCandidate,
  resetMedia: ResetMedia,
  restartIce: RestartIce,
  refreshVideo: RefreshVideo,
  message: SendMessage,
  ask: Ask,
  reply: Reply,
  stream: OpenStream,
  part: SendPart,
  credit: GiveCredit,
  metadata: UpdateMetadata,
  roster: RequestRoster,
  show: Show,
  quality: ReportQuality,
  iceServers: RequestIceServers,
  ping: Ping,
  leave: Leave,
} as const;

export type ClientMessages = { [T in keyof typeof CLIENT_MESSAGES]: Static<(typeof CLIENT_MESSAGES)[T]> };
export type ClientMessage = ClientMessages[keyof ClientMessages];
