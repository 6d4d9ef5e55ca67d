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

/** What every request may carry: the answer repeats it as `replyTo`. */
const request = {
  id: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'Repeated as `replyTo` in the answer.' })),
};

/** First message of a new session. The token never stands in the URL, where proxies log it. */
export const Join = Type.Object(
  {
    type: Type.Literal('join'),
    ...request,
    token: Type.String({ minLength: 1, maxLength: 8192, description: 'Participant token (JWT).' }),
    autoSubscribe: Type.Optional(
      Type.Boolean({ description: 'Whether to receive every track without asking; default true.' }),
    ),
    requireMedia: Type.Optional(
      Type.Boolean({ description: 'Whether to be refused (`media_unavailable`) rather than join without media.' }),
    ),
  },
  strict,
);

/** First message of a connection that goes on with a session whose connection was lost. */
export const Resume = Type.Object(
  {
    type: Type.Literal('resume'),
    ...request,
    sessionId: ResourceId,
    resumeSecret: Type.String({ minLength: 1, maxLength: 256 }),
    autoSubscribe: Type.Optional(Type.Boolean({ description: 'As in `join`; default true.' })),
    continueMedia: Type.Optional(
      Type.Boolean({
        description: 'False when the client has no peer connections any more, as after a reload; default true.',
      }),
    ),
  },
  strict,
);

/** Offers everything that is to be published from now on; a track that is missing here is unpublished. */
export const Publish = Type.Object(
  {
    type: Type.Literal('publish'),
    ...request,
    sdp: Sdp,
    tracks: Type.Array(
      Type.Object(
        {
          trackId: TrackId,
          mid: Type.String({ minLength: 1, maxLength: 64, description: 'Its media section in the offer.' }),
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

/** Ends the publishing of everything, and the publisher's peer connection. */
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

/** The answer to the gateway's latest `offer`. */
export const Answer = Type.Object(
  { type: Type.Literal('answer'), ...request, offerId: Type.Integer(), sdp: Sdp },
  strict,
);

export const ClientCandidate = Type.Object(
  { type: Type.Literal('candidate'), ...request, target: PeerTarget, candidate: Candidate },
  strict,
);

/**
 * The client has thrown these peer connections away, because they failed at its end: the gateway does the same. A new
 * `offer` follows for the subscriber; the publisher publishes again.
 */
export const ResetMedia = Type.Object(
  { type: Type.Literal('resetMedia'), ...request, targets: Type.Array(PeerTarget, { minItems: 1, maxItems: 2 }) },
  strict,
);

/** To the others in the room, or to some of them. Needs `messages:send`. */
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

/** Replaces the own participant's metadata. Needs `metadata:update`. */
export const UpdateMetadata = Type.Object(
  { type: Type.Literal('metadata'), ...request, metadata: Type.Record(Type.String(), Type.Unknown()) },
  strict,
);

/** Asks for fresh ICE servers: TURN credentials expire before a long call does. */
export const RequestIceServers = Type.Object({ type: Type.Literal('iceServers'), ...request }, strict);

export const Ping = Type.Object({ type: Type.Literal('ping'), ...request }, strict);

/** Ends the session at once; the gateway closes the connection with the reason `left`. */
export const Leave = Type.Object({ type: Type.Literal('leave'), ...request }, strict);

/** By `type`. */
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
export type ClientMessage = ClientMessages[keyof ClientMessages];
