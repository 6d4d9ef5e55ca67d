import {
  EXTERNAL_ID_LENGTH_MAX,
  type LiveParticipantState,
  PARTICIPANT_STATES,
  PARTICIPANT_STATUSES,
  PERMISSIONS,
  presentLiveParticipant,
  presentOperation,
  PublicError,
  type Tenant,
  TRACK_KINDS,
  TRACK_SOURCES,
} from '@callplane/core';
import { acceptParticipantRemoval, type Database, listParticipants } from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { idOf } from '../http/cursor.js';
import { listRoute } from '../http/list-route.js';
import { defineRoute, tagged, type Route } from '../http/route.js';
import { exactText, metadata, namedObject, oneOf, orNull, pathId, strictObject, timestamp } from '../http/schemas.js';
import { answerOperation, OPERATION_ANSWERS, OperationSchema } from '../operations/operations.js';
import { requireRoom, RoomPath } from '../rooms/rooms.routes.js';

const storedParticipant = {
  id: Type.String({ description: 'Participant identifier, `part_…`.' }),
  roomId: Type.String(),
  externalId: orNull(Type.String({ description: 'The `externalId` of the token request, if it had one.' })),
  name: Type.String(),
  metadata: metadata(),
  role: Type.String({ description: 'The `role` of the token request, by default `participant`.' }),
  joinedAt: timestamp('When the participant first connected. Before that, when its token was issued.'),
  leftAt: orNull(
    timestamp('When the last session of the participant ended. If it never connected, when its token expired.'),
  ),
};

/** The participant in an event, and in the answer to a change. */
export const StoredParticipantSchema = namedObject('StoredParticipant', storedParticipant);

export const effectivePermissions = Type.Array(oneOf(PERMISSIONS), {
  description: 'All permissions of the participant.',
});

export const trackFields = { trackId: Type.String(), kind: oneOf(TRACK_KINDS), source: oneOf(TRACK_SOURCES) };

const otherParticipant = { roomId: Type.String(), participantId: Type.String() };
const OtherParticipant = strictObject(otherParticipant);

/** `movedTo` and `movedFrom` of events. */
export const OtherSession = strictObject({ ...otherParticipant, sessionId: Type.String() });

const ParticipantSchema = namedObject('Participant', {
  ...storedParticipant,
  state: oneOf(
    PARTICIPANT_STATES,
    '`invited`: it has not connected yet. `waiting`: it is in the lobby. `connected`: it is in the room. ' +
      '`disconnected`: it is in the room, but its connection was lost a moment ago. `left`: it may join again with a ' +
      'valid token. `removed` and `moved`: it may not.',
  ),
  permissions: effectivePermissions,
  tracks: Type.Array(
    namedObject('PublishedTrack', {
      ...trackFields,
      muted: Type.Boolean({ description: 'Whether the participant or the server has muted it.' }),
    }),
    { description: 'The tracks that the participant publishes at this moment.' },
  ),
  movedTo: Type.Optional({ ...OtherParticipant, description: 'The participant in the room that it was moved to.' }),
  movedFrom: Type.Optional({ ...OtherParticipant, description: 'The participant in the room that it was moved from.' }),
});

export const ParticipantPath = Type.Object({
  ...RoomPath.properties,
  participantId: pathId('Participant in this room.'),
});

/** Permissions in a request. */
export const permissionsGiven = Type.Array(oneOf(PERMISSIONS), {
  maxItems: PERMISSIONS.length,
  uniqueItems: true,
  contains: { const: 'room:join' },
  description: 'Permissions of the participant. Must include `room:join`.',
});

export function participantRoutes(deps: Deps): Route[] {
  return tagged('Participants', [
    listRoute(deps, {
      path: '/v1/rooms/{roomId}/participants',
      operationId: 'listParticipants',
      summary: 'List participants, the latest first',
      description: 'Lists only participants that have connected at least once.',
      scope: 'participants:read',
      params: RoomPath,
      filters: {
        status: Type.Optional(
          oneOf(PARTICIPANT_STATUSES, '`active`: in the room. `waiting`: in its lobby. `left`: not any more.'),
        ),
        externalId: Type.Optional(exactText(EXTERNAL_ID_LENGTH_MAX, 'Returns only participants with exactly this id.')),
      },
      position: {
        /** The first connection, up to the end of the year 9999. */
        connectedAtMs: Type.Integer({ minimum: 0, maximum: 253_402_300_799_999 }),
        id: idOf('part'),
      },
      item: ParticipantSchema,
      items: 'participants',
      read({ caller, params, query: { status = null, externalId = null } }, { position, limit }) {
        const after = position && { connectedAt: new Date(position.connectedAtMs), id: position.id };
        return listParticipants(deps.reads.sql, caller, params.roomId, { status, externalId, after, limit });
      },
      positionOf: ({ connectedAt, id }) => ({ connectedAtMs: connectedAt?.getTime() ?? 0, id }),
      onEmpty: ({ caller, params }) => requireRoom(deps.reads, caller, params.roomId),
      present: (participant) => presentLiveParticipant(participant, deps.clock.now()),
    }),
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}/participants/{participantId}',
      operationId: 'readParticipant',
      summary: 'Read a participant',
      scope: 'participants:read',
      params: ParticipantPath,
      responses: { 200: { description: 'The participant.', schema: ParticipantSchema } },
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
      scope: 'participants:remove',
      prefers: true,
      params: ParticipantPath,
      responses: OPERATION_ANSWERS,
      async handle(call) {
        const { caller, params } = call;
        const { roomId, participantId } = params;
        // Once this commits, the participant is blocked and its tokens are revoked. A worker does the clean-up.
        const accepted = await acceptParticipantRemoval(deps.database, caller, roomId, participantId, deps.clock.now());
        return answerOperation(
          deps,
          roomId,
          accepted ?? (await participantNotFound(deps.database, caller, roomId)),
          call,
        );
      },
    }),
    defineRoute({
      method: 'get',
      path: '/v1/rooms/{roomId}/participants/{participantId}/runtime-operation',
      operationId: 'readParticipantOperation',
      summary: 'Read the clean-up of a participant',
      scope: 'participants:read',
      params: ParticipantPath,
      responses: { 200: { description: 'The operation.', schema: OperationSchema } },
      errors: ['OPERATION_NOT_FOUND'],
      async handle({ caller, params }) {
        const { roomId, participantId } = params;
        await readParticipant(deps, caller, roomId, participantId);
        const operation = await deps.statements.findParticipantOperation({ tenant: caller, id: participantId });
        if (operation === null) throw new PublicError('OPERATION_NOT_FOUND');
        return { status: 200, body: presentOperation(operation) };
      },
    }),
  ]);
}

async function readParticipant(
  { reads, statements }: Pick<Deps, 'reads' | 'statements'>,
  tenant: Tenant,
  roomId: string,
  participantId: string,
): Promise<LiveParticipantState> {
  const participant = await statements.findParticipant({ tenant, roomId, id: participantId });
  return participant ?? participantNotFound(reads, tenant, roomId);
}

/** Throws the error of a missing room or participant. */
export async function participantNotFound(database: Database, tenant: Tenant, roomId: string): Promise<never> {
  await requireRoom(database, tenant, roomId);
  throw new PublicError('PARTICIPANT_NOT_FOUND');
}
