import { Type, type Static } from 'typebox';
import { CLIENT_MESSAGES, request, Resume } from './client-messages.js';
import { PROTOCOL_LIMITS } from './limits.js';
import { Layer, PeerTarget, QualityLevel, ResourceId, strict, TrackReference } from './shapes.js';

/** As in version 1, with what another gateway needs to know of the client's peer connections to go on with them. */
export const ResumeV2 = Type.Object(
  {
    ...Resume.properties,
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
  },
  strict,
);

/**
 * Chooses tracks to receive, and how. A choice lasts until `unsubscribe`. `subscribed` says what is received; at most 25
 * video and 8 audio tracks are. Of the video tracks, those that are not paused come first; of the audio tracks, the
 * loudest. A track that finds no place is reported with `subscriptionFailed`, and is received as soon as it can be.
 */
export const SubscribeV2 = Type.Object(
  {
    type: Type.Literal('subscribe'),
    ...request,
    tracks: Type.Array(
      Type.Object(
        {
          ...TrackReference.properties,
          layer: Type.Optional(Layer),
          paused: Type.Optional(
            Type.Boolean({
              description:
                'Whether nothing is sent for now, for example because the track is not visible; default false. A paused track loses its place to one that is not paused.',
            }),
          ),
        },
        strict,
      ),
      { minItems: 1, maxItems: PROTOCOL_LIMITS.subscriptionsMax },
    ),
  },
  strict,
);

/** Requests a page of the room's roster: all participants except viewers, in order of their session ids. */
export const RequestRoster = Type.Object(
  {
    type: Type.Literal('roster'),
    ...request,
    cursor: Type.Optional(ResourceId),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: PROTOCOL_LIMITS.rosterPageMax,
        description: 'Participants on the page at most; default 50.',
      }),
    ),
  },
  strict,
);

/**
 * In a paged room: requests the changes of these participants from now on. Replaces the list of the previous `show`. In
 * a room that is not paged everyone is shown; the list takes effect if the room becomes paged.
 */
export const Show = Type.Object(
  {
    type: Type.Literal('show'),
    ...request,
    participantIds: Type.Array(ResourceId, { maxItems: PROTOCOL_LIMITS.shownMax, uniqueItems: true }),
    publishers: Type.Optional(
      Type.Boolean({ description: 'Whether to show the first 100 publishers, too; default true.' }),
    ),
  },
  strict,
);

/**
 * Reports how well the client sends and receives, whichever is worse. Send it when the level or the relay changes, at
 * most once in 2 s. Needs no permission.
 */
export const ReportQuality = Type.Object(
  {
    type: Type.Literal('quality'),
    ...request,
    level: QualityLevel,
    lossPercent: Type.Optional(Type.Number({ minimum: 0, maximum: 100 })),
    roundTripMs: Type.Optional(Type.Number({ minimum: 0, maximum: 60_000 })),
    jitterMs: Type.Optional(Type.Number({ minimum: 0, maximum: 60_000 })),
    relay: Type.Optional(Type.Boolean({ description: 'Whether media goes through a TURN server; default false.' })),
  },
  strict,
);

/**
 * Requests new ICE credentials for the receiving connection, because no media arrives over its present path. An `offer`
 * follows that keeps all media sections. For the sending connection, `publish` an offer with an ICE restart.
 */
export const RestartIce = Type.Object({ type: Type.Literal('restartIce'), ...request }, strict);

/**
 * Requests key frames, because the path of these peer connections was interrupted and works again: of the client's own
 * video for its receivers (`publisher`), and of all video that it receives (`subscriber`). At most once in 2 s.
 */
export const RefreshVideo = Type.Object(
  { type: Type.Literal('refreshVideo'), ...request, targets: Type.Array(PeerTarget, { minItems: 1, maxItems: 2 }) },
  strict,
);

/** The schema of each client message of version 2, by its `type`. */
export const CLIENT_MESSAGES_V2 = {
  ...CLIENT_MESSAGES,
  resume: ResumeV2,
  subscribe: SubscribeV2,
  roster: RequestRoster,
  show: Show,
  quality: ReportQuality,
  restartIce: RestartIce,
  refreshVideo: RefreshVideo,
} as const;

export type ClientMessagesV2 = { [T in keyof typeof CLIENT_MESSAGES_V2]: Static<(typeof CLIENT_MESSAGES_V2)[T]> };
export type ClientMessageV2 = ClientMessagesV2[keyof ClientMessagesV2];
