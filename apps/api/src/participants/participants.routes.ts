import { formatTimestamp, presentOperation, presentParticipant } from '@callplane/core';
import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { OperationSchema } from '../operations/operations.schemas.js';
import { answerOperation, OPERATION_ANSWERS } from '../operations/answer-operation.js';
import { RoomPath } from '../rooms/rooms.schemas.js';
import {
  IssueTokenBody,
  ListParticipantsQuery,
  PARTICIPANT_LIST,
  ParticipantPage,
  ParticipantPath,
  ParticipantSchema,
  TokenSchema,
} from './participants.schemas.js';
import {
  pageOfParticipants,
  readParticipant,
  readParticipantOperation,
  removeParticipant,
} from './participants.service.js';
import { issueToken } from './tokens.service.js';

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
          body: { data: rows.map((participant) => presentParticipant(participant, now)), nextCursor },
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
        return { status: 200, body: presentParticipant(participant, deps.clock.now()) };
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
        const accepted = await removeParticipant(deps, caller, params.roomId, params.participantId);
        return answerOperation(deps, params.roomId, accepted, call);
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
        const operation = await readParticipantOperation(deps, caller, params.roomId, params.participantId);
        return { status: 200, body: presentOperation(operation) };
      },
    }),
  ];
}
