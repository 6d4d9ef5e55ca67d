import { Type, type Static } from 'typebox';
import { ERROR_CODES, type ErrorCode } from './error-codes.js';
import { PROTOCOL_LIMITS } from './limits.js';
import { replyTo, SERVER_MESSAGES, Welcome, type ServerMessage } from './server-messages.js';
import {
  choice,
  PeerTarget,
  QualityLevel,
  RemoteParticipant,
  ResourceId,
  strict,
  Track,
  TrackId,
  TrackReference,
} from './shapes.js';

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

/** Answers `join` and `resume`. `participants` is everyone, or in a paged room the first page, publishers first. */
export const WelcomeV2 = Type.Object(
  {
    ...Welcome.properties,
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
 * The media server has noticed lost packets: of what it sends (`subscriber`) or of what the client sends (`publisher`).
 * At most once a second for each connection.
 */
export const SlowLink = Type.Object(
  { type: Type.Literal('slowLink'), target: PeerTarget, lost: count('Lost packets, about a second’s worth.') },
  strict,
);

/**
 * How much of the client's own video is received: all of its video tracks. After a welcome and a publication, and when it
 * changes. A client may ignore it, or save the encodings above.
 */
export const LayersWanted = Type.Object(
  {
    type: Type.Literal('layersWanted'),
    tracks: Type.Array(
      Type.Object(
        {
          trackId: TrackId,
          maxSpatial: Type.Union([Type.Integer({ minimum: 0, maximum: 2 }), Type.Null()], {
            description: 'The highest simulcast layer that is received, 0 being the lowest; null: none is.',
          }),
        },
        strict,
      ),
      { minItems: 1, maxItems: PROTOCOL_LIMITS.tracksMax },
    ),
  },
  strict,
);

const {
  participantJoined: _joined,
  participantUpdated: _updated,
  participantLeft: _left,
  trackPublished: _published,
  trackUnpublished: _unpublished,
  trackUpdated: _trackUpdated,
  ...SAME
} = SERVER_MESSAGES;

/** The schema of each server message of version 2, by its `type`. `changes` replaces six types of version 1. */
export const SERVER_MESSAGES_V2 = {
  ...SAME,
  welcome: WelcomeV2,
  roster: RosterPage,
  shown: Shown,
  changes: Changes,
  viewerCount: ViewerCount,
  rosterPaged: RosterPaged,
  permissions: Permissions,
  roomUpdated: RoomUpdated,
  quality: Quality,
  subscribed: Subscribed,
  subscriptionFailed: SubscriptionFailed,
  speakers: Speakers,
  layersWanted: LayersWanted,
  slowLink: SlowLink,
} as const;

export type ServerMessagesV2 = { [T in keyof typeof SERVER_MESSAGES_V2]: Static<(typeof SERVER_MESSAGES_V2)[T]> };
type ServerMessageV2 = ServerMessagesV2[keyof ServerMessagesV2];
/** A message of any version. */
export type AnyServerMessage = ServerMessage | ServerMessageV2;
