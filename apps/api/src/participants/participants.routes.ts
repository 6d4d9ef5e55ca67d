import {
  EXTERNAL_ID_LENGTH_MAX,
  formatTimestamp,
  type LiveParticipantState,
  PARTICIPANT_NAME_LENGTH_MAX,
  PARTICIPANT_STATES,
  PARTICIPANT_STATUSES,
  type ParticipantStatus,
  PERMISSIONS,
  presentLiveParticipant,
  presentOperation,
  PublicError,
  type Tenant,
  TOKEN_TTL_SECONDS,
  TRACK_KINDS,
  TRACK_SOURCES,
} from '@callplane/core';
import { acceptParticipantRemoval, listParticipants, roomExists } from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { defineList, idOf, type Page, type PageCursor } from '../http/cursor.js';
import { defineRoute, type Route } from '../http/route.js';
import {
  exactText,
  metadata,
  metadataObject,
  oneOf,
  orNull,
  page,
  PAGE_LIMIT_DEFAULT,
  pageQuery,
  pathId,
  strictObject,
  timestamp,
  trimmedText,
} from '../http/schemas.js';
import { answerOperation, OPERATION_ANSWERS, OperationSchema } from '../operations/operations.js';
import { RoomPath } from '../rooms/rooms.routes.js';
import { issueToken } from './tokens.routes.js';

/** The end of the year 9999. */
const TIME_MS_MAX = 253_402_300_799_999;

const storedParticipant = {
  id: Type.String({ description: 'Participant identifier, `part_…`.' }),
  roomId: Type.String(),
  externalId: orNull(Type.String({ description: 'The `externalId` of the token request, if it had one.' })),
  name: Type.String(),
  metadata: metadata(),
  role: Type.String({ description: 'Always `participant`.' }),
  joinedAt: timestamp('When the participant first connected. Before that, when its token was issued.'),
  leftAt: orNull(
    timestamp('When the last session of the participant ended. If it never connected, when its token expired.'),
  ),
};

/** The participant in an event, and in the answer to a change. */
export const StoredParticipantSchema = Type.Object(storedParticipant, {
  title: 'StoredParticipant',
  additionalProperties: false,
});

export const effectivePermissions = Type.Array(oneOf(PERMISSIONS), {
  description: 'All permissions of the participant.',
});

const ParticipantSchema = Type.Object(
  {
    ...storedParticipant,
    state: oneOf(
      PARTICIPANT_STATES,
      '`invited`: it has not connected yet. `connected`: it is in the room. `disconnected`: it is in the room, but its ' +
        'connection was lost a moment ago. `left`: it may join again with a valid token. `removed`: it may not.',
    ),
    permissions: effectivePermissions,
    tracks: Type.Array(
      Type.Object(
        {
          trackId: Type.String(),
          kind: oneOf(TRACK_KINDS),
          source: oneOf(TRACK_SOURCES),
          muted: Type.Boolean({ description: 'Whether the participant or the server has muted it.' }),
        },
        { title: 'PublishedTrack', additionalProperties: false },
      ),
      { description: 'The tracks that the participant publishes at this moment.' },
    ),
  },
  { title: 'Participant', additionalProperties: false },
);

export const ParticipantPath = Type.Object({
  ...RoomPath.properties,
  participantId: pathId('Participant in this room.'),
});

const ListParticipantsQuery = Type.Object({
  status: Type.Optional(oneOf(PARTICIPANT_STATUSES)),
  externalId: Type.Optional(exactText(EXTERNAL_ID_LENGTH_MAX, 'Returns only participants with exactly this id.')),
  ...pageQuery(),
});
/** Ordered by the first connection, in milliseconds since 1970. */
const PARTICIPANT_LIST = defineList('participants', {
  connectedAtMs: Type.Integer({ minimum: 0, maximum: TIME_MS_MAX }),
  id: idOf('part'),
});

const ParticipantPage = page('ParticipantPage', ParticipantSchema);

/** Permissions in a request. */
export const permissionsGiven = Type.Array(oneOf(PERMISSIONS), {
  maxItems: PERMISSIONS.length,
  uniqueItems: true,
  contains: { const: 'room:join' },
  description: 'Permissions of the participant. Must include `room:join`.',
});

const IssueTokenBody = strictObject(
  {
    participantName: trimmedText(PARTICIPANT_NAME_LENGTH_MAX, 'Name of the participant.'),
    permissions: Type.Optional({ ...permissionsGiven, default: ['room:join'] }),
    metadata: Type.Optional(metadataObject('Initial participant metadata.')),
    ttlSeconds: Type.Optional(
      Type.Integer({
        minimum: TOKEN_TTL_SECONDS.min,
        maximum: TOKEN_TTL_SECONDS.max,
        default: TOKEN_TTL_SECONDS.default,
        description: 'Lifetime of the token, in seconds.',
      }),
    ),
    externalId: Type.Optional(trimmedText(EXTERNAL_ID_LENGTH_MAX, 'Identifier of the user in your application.')),
  },
  { title: 'IssueToken' },
);

const TokenSchema = Type.Object(
  {
    token: Type.String({ description: 'Bearer token (JWT, ES256) for one participant.' }),
    participantId: Type.String({ description: 'The new participant identity.' }),
    tokenId: Type.String({ description: 'Token identifier, `tok_…`.' }),
    expiresAt: timestamp("The token's `exp` as a time."),
  },
  { title: 'ParticipantToken', additionalProperties: false },
);

export function participantRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'post',
      path: '/v1/rooms/{roomId}/tokens',
      operationId: 'issueToken',
      summary: 'Issue a participant token',
      description:
        'Every call creates a new participant identity; it never renews a token. Authenticate your own user and ' +
        'check access to the room before you issue a token.',
      tag: 'Participants',
      scope: 'tokens:create',
      params: RoomPath,
      body: IssueTokenBody,
      responses: { 201: { description: 'The token.', schema: TokenSchema } },
      errors: ['ROOM_NOT_FOUND', 'ROOM_ENDED'],
      async handle({ caller, params, body, log }) {
        const issued = await issueToken(deps, caller, params.roomId, body);
        log({ participantId: issued.participantId, tokenId: issued.tokenId });
        return { status: 201, body: { ...issued, expiresAt: formatTimestamp(issued.expiresAt) } };
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}/participants',
      operationId: 'listParticipants',
      summary: 'List participants, the latest first',
      description: 'Lists only participants that have connected at least once.',
      tag: 'Participants',
      scope: 'participants:read',
      params: RoomPath,
      query: ListParticipantsQuery,
      list: PARTICIPANT_LIST,
      responses: { 200: { description: 'One page of participants.', schema: ParticipantPage } },
      errors: ['ROOM_NOT_FOUND'],
      async handle({ caller, params, query, cursor }) {
        const { rows, nextCursor } = await pageOfParticipants(deps, caller, params.roomId, query, cursor);
        const now = deps.clock.now();
        return {
          status: 200,
          body: { data: rows.map((participant) => presentLiveParticipant(participant, now)), nextCursor },
        };
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}/participants/{participantId}',
      operationId: 'readParticipant',
      summary: 'Read a participant',
      tag: 'Participants',
      scope: 'participants:read',
      params: ParticipantPath,
      responses: { 200: { description: 'The participant.', schema: ParticipantSchema } },
      errors: ['ROOM_NOT_FOUND', 'PARTICIPANT_NOT_FOUND'],
      async handle({ caller, params }) {
        const participant = await readParticipant(deps, caller, params.roomId, params.participantId);
        return { status: 200, body: presentLiveParticipant(participant, deps.clock.now()) };
      },
    }),
    defineRoute({
      method: 'delete',
      path: '/v1/rooms/{roomId}/participants/{participantId}',
      operationId: 'removeParticipant',
      summary: 'Remove a participant',
      description:
        'Blocks the identity, revokes its tokens and disconnects it, as a durable operation. Works before the first join too.',
      tag: 'Participants',
      scope: 'participants:remove',
      prefers: true,
      params: ParticipantPath,
      responses: OPERATION_ANSWERS,
      errors: ['ROOM_NOT_FOUND', 'PARTICIPANT_NOT_FOUND'],
      async handle(call) {
        const { caller, params } = call;
        const { roomId, participantId } = params;
        // Once this commits, the participant is blocked and its tokens are revoked. A worker does the clean-up.
        const accepted = await acceptParticipantRemoval(deps.database, caller, roomId, participantId, deps.clock.now());
        if (accepted === null) throw await participantNotFound(deps, caller, roomId);
        return answerOperation(deps, roomId, accepted, call);
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}/participants/{participantId}/runtime-operation',
      operationId: 'readParticipantOperation',
      summary: 'Read the clean-up of a participant',
      tag: 'Participants',
      scope: 'participants:read',
      params: ParticipantPath,
      responses: { 200: { description: 'The operation.', schema: OperationSchema } },
      errors: ['ROOM_NOT_FOUND', 'PARTICIPANT_NOT_FOUND', 'OPERATION_NOT_FOUND'],
      async handle({ caller, params }) {
        const { roomId, participantId } = params;
        await readParticipant(deps, caller, roomId, participantId);
        const operation = await deps.statements.findParticipantOperation({ tenant: caller, id: participantId });
        if (operation === null) throw new PublicError('OPERATION_NOT_FOUND');
        return { status: 200, body: presentOperation(operation) };
      },
    }),
  ];
}

async function readParticipant(
  deps: Pick<Deps, 'database' | 'statements'>,
  tenant: Tenant,
  roomId: string,
  participantId: string,
): Promise<LiveParticipantState> {
  const participant = await deps.statements.findParticipant({ tenant, roomId, id: participantId });
  if (participant === null) throw await participantNotFound(deps, tenant, roomId);
  return participant;
}

async function pageOfParticipants(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  roomId: string,
  query: { status?: ParticipantStatus; externalId?: string; limit?: number },
  cursor: PageCursor<{ connectedAtMs: number; id: string }>,
): Promise<Page<LiveParticipantState>> {
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const { position } = cursor;
  const after = position === null ? null : { connectedAt: new Date(position.connectedAtMs), id: position.id };
  const participants = await listParticipants(deps.database.sql, tenant, roomId, {
    status: query.status ?? null,
    externalId: query.externalId ?? null,
    after,
    limit: limit + 1,
  });
  if (participants.length === 0 && !(await roomExists(deps.database.prisma, tenant, roomId))) {
    throw new PublicError('ROOM_NOT_FOUND');
  }
  const shown = participants.slice(0, limit);
  const last = shown.at(-1);
  const more = participants.length > limit && last !== undefined && last.connectedAt !== null;
  return {
    rows: shown,
    nextCursor: more ? cursor.encode({ connectedAtMs: last.connectedAt.getTime(), id: last.id }) : null,
  };
}

/** Returns the error for the missing resource: the room or the participant. */
export async function participantNotFound(
  deps: Pick<Deps, 'database'>,
  tenant: Tenant,
  roomId: string,
): Promise<PublicError> {
  const exists = await roomExists(deps.database.prisma, tenant, roomId);
  return new PublicError(exists ? 'PARTICIPANT_NOT_FOUND' : 'ROOM_NOT_FOUND');
}
