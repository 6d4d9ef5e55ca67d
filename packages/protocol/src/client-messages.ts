import { Type, type Static } from 'typebox';
import { PROTOCOL_LIMITS } from './limits.js';
import {
  Candidate,
  Layer,
  PeerTarget,
  ResourceId,
  Sdp,
  strict,
  TrackId,
  TrackReference,
  TrackSource,
} from './shapes.js';

/** Fields that every request may have. */
export const request = {
  id: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'The answer repeats it as `replyTo`.' })),
};

/** First message of a new session. It carries the token, because proxies log URLs. */
export const Join = Type.Object(
  {
    type: Type.Literal('join'),
    ...request,
    token: Type.String({ minLength: 1, maxLength: 8192, description: 'Participant token (JWT).' }),
    autoSubscribe: Type.Optional(
      Type.Boolean({ description: 'Whether to subscribe to every track automatically; default true.' }),
    ),
    requireMedia: Type.Optional(
      Type.Boolean({
        description: 'Whether to refuse the join with `media_unavailable` if no media server is up; default false.',
      }),
    ),
  },
  strict,
);

/** First message of a connection that resumes a session whose previous connection was lost. */
export const Resume = Type.Object(
  {
    type: Type.Literal('resume'),
    ...request,
    sessionId: ResourceId,
    resumeSecret: Type.String({ minLength: 1, maxLength: 256 }),
    autoSubscribe: Type.Optional(Type.Boolean({ description: 'As in `join`; default true.' })),
    continueMedia: Type.Optional(
      Type.Boolean({
        description: 'False if the client has lost its peer connections, for example by a page reload; default true.',
      }),
    ),
  },
  strict,
);

/** Offers every track that the session publishes from now on. The gateway unpublishes tracks that are missing here. */
export const Publish = Type.Object(
  {
    type: Type.Literal('publish'),
    ...request,
    sdp: Sdp,
    tracks: Type.Array(
      Type.Object(
        {
          trackId: TrackId,
          mid: Type.String({
            minLength: 1,
            maxLength: 64,
            description: '`mid` of the media section for the track in the offer.',
          }),
          source: TrackSource,
          muted: Type.Optional(Type.Boolean()),
        },
        strict,
      ),
      { maxItems: PROTOCOL_LIMITS.tracksMax },
    ),
  },
  strict,
);

/** Unpublishes all tracks and closes the publisher's peer connection. */
export const Unpublish = Type.Object({ type: Type.Literal('unpublish'), ...request }, strict);

export const Mute = Type.Object(
  { type: Type.Literal('mute'), ...request, trackId: TrackId, muted: Type.Boolean() },
  strict,
);

export const Subscribe = Type.Object(
  {
    type: Type.Literal('subscribe'),
    ...request,
    tracks: Type.Array(Type.Object({ ...TrackReference.properties, layer: Type.Optional(Layer) }, strict), {
      minItems: 1,
      maxItems: PROTOCOL_LIMITS.subscriptionsMax,
    }),
  },
  strict,
);

export const Unsubscribe = Type.Object(
  {
    type: Type.Literal('unsubscribe'),
    ...request,
    tracks: Type.Array(TrackReference, { minItems: 1, maxItems: PROTOCOL_LIMITS.subscriptionsMax }),
  },
  strict,
);

/** Answers the gateway's latest `offer`. */
export const Answer = Type.Object(
  { type: Type.Literal('answer'), ...request, offerId: Type.Integer(), sdp: Sdp },
  strict,
);

export const ClientCandidate = Type.Object(
  { type: Type.Literal('candidate'), ...request, target: PeerTarget, candidate: Candidate },
  strict,
);

/**
 * Says that the client closed these peer connections because they failed on its side. The gateway closes them, too. For
 * the subscriber, a new `offer` follows; for the publisher, the client sends `publish` again.
 */
export const ResetMedia = Type.Object(
  { type: Type.Literal('resetMedia'), ...request, targets: Type.Array(PeerTarget, { minItems: 1, maxItems: 2 }) },
  strict,
);

/** Sends data to all other participants in the room, or to those in `to`. Needs the permission `messages:send`. */
export const SendMessage = Type.Object(
  {
    type: Type.Literal('message'),
    ...request,
    data: Type.Unknown({ description: 'Any JSON value.' }),
    to: Type.Optional(
      Type.Array(ResourceId, { minItems: 1, maxItems: PROTOCOL_LIMITS.recipientsMax, uniqueItems: true }),
    ),
  },
  strict,
);

/** Replaces the metadata of the client's own participant. Needs the permission `metadata:update`. */
export const UpdateMetadata = Type.Object(
  { type: Type.Literal('metadata'), ...request, metadata: Type.Record(Type.String(), Type.Unknown()) },
  strict,
);

/** Requests fresh ICE servers, because TURN credentials expire during a long call. */
export const RequestIceServers = Type.Object({ type: Type.Literal('iceServers'), ...request }, strict);

export const Ping = Type.Object({ type: Type.Literal('ping'), ...request }, strict);

/** Ends the session at once. The gateway closes the connection with the reason `left`. */
export const Leave = Type.Object({ type: Type.Literal('leave'), ...request }, strict);

/** The schema of each client message of version 1, by its `type`. */
export const CLIENT_MESSAGES = {
  join: Join,
  resume: Resume,
  publish: Publish,
  unpublish: Unpublish,
  mute: Mute,
  subscribe: Subscribe,
  unsubscribe: Unsubscribe,
  answer: Answer,
  candidate: ClientCandidate,
  resetMedia: ResetMedia,
  message: SendMessage,
  metadata: UpdateMetadata,
  iceServers: RequestIceServers,
  ping: Ping,
  leave: Leave,
} as const;

export type ClientMessages = { [T in keyof typeof CLIENT_MESSAGES]: Static<(typeof CLIENT_MESSAGES)[T]> };
