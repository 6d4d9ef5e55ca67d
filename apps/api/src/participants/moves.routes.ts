import { PATH_ID_PATTERN, presentOperation, PublicError, type ErrorDetail, type Tenant } from '@callplane/core';
import {
  acceptParticipantMove,
  findOperationsOf,
  type AcceptedOperation,
  type MoveInput,
  type MoveRefused,
  type WakeableOperation,
} from '@callplane/db';
import { Type, type Static } from 'typebox';
import type { Deps } from '../deps.js';
import { idempotently } from '../http/idempotency.js';
import { contextOf } from '../http/request-context.js';
import { defineRoute, tagged, type Call, type Reply, type Route } from '../http/route.js';
import { namedObject, orNull, strictObject } from '../http/schemas.js';
import { OperationSchema, waitForOperation } from '../operations/operations.js';
import { requireRoom, RoomPath } from '../rooms/rooms.routes.js';
import { participantNotFound, ParticipantPath, permissionsGiven } from './participants.routes.js';

/** Moves of one request. */
export const MOVES_MAX = 100;

const roomId = Type.String({ pattern: PATH_ID_PATTERN, description: 'The room to move to.' });
const permissions = Type.Optional({
  ...permissionsGiven,
  description: 'All permissions in the target. By default, the participant keeps its permissions.',
});
const MoveBody = namedObject('MoveParticipant', { roomId, permissions });
const MovesBody = namedObject('MoveParticipants', {
  moves: Type.Array(
    namedObject('MoveOne', { participantId: Type.String({ pattern: PATH_ID_PATTERN }), ...MoveBody.properties }),
    { minItems: 1, maxItems: MOVES_MAX, description: 'Each participant at most once.' },
  ),
});

const MovesSchema = namedObject('Moves', {
  data: Type.Array(
    namedObject('Move', {
      participantId: Type.String(),
      operation: orNull(OperationSchema),
      error: orNull(strictObject({ code: Type.String(), message: Type.String() })),
    }),
    { description: 'In the order of the request, each with its operation, or the error that refuses it.' },
  ),
});

const PATH = '/v1/rooms/{roomId}/participants/{participantId}/move';
const MANY_PATH = '/v1/rooms/{roomId}/moves';

export function moveRoutes(deps: Deps): Route[] {
  return tagged('Participants', [
    defineRoute({
      method: 'post',
      path: PATH,
      operationId: 'moveParticipant',
      summary: 'Move a participant to another room',
      description:
        'Continues the session of the participant in another room of the environment, as a durable operation: without a ' +
        'new token, and with the same devices. The target has a new participant with the same data. A participant ' +
        'without a session is refused. The answer waits only if `Prefer` asks for it.',
      scope: 'participants:update',
      idempotent: true,
      prefers: true,
      params: ParticipantPath,
      body: MoveBody,
      responses: { 202: { description: 'The operation.', schema: OperationSchema } },
      errors: [
        'ROOM_ENDED',
        'ROOM_FULL',
        'ENCRYPTION_DIFFERS',
        'PARTICIPANT_REMOVED',
        'PARTICIPANT_MOVED',
        'PARTICIPANT_NOT_CONNECTED',
      ],
      async handle(call) {
        const { caller, params, body, bodyAsSent, idempotencyKey } = call;
        assertOtherRooms(params.roomId, [{ path: 'body.roomId', roomId: body.roomId }]);
        let headers: Record<string, string> = {};
        const make = async () => {
          const moved = await accept(deps, caller, params.roomId, params.participantId, body);
          if ('refused' in moved) {
            if (moved.refused === 'not_found') return participantNotFound(deps.database, caller, params.roomId);
            throw errorOf(moved);
          }
          const answer = await waitForOperation(deps, moved, call, 0);
          ({ headers } = answer);
          return presentOperation(answer.operation);
        };
        const answer = (operation: Awaited<ReturnType<typeof make>>): Reply => {
          contextOf(call.response).logFields['operationId'] = operation.id;
          return { status: 202, body: operation, headers };
        };
        // Accepted before the commit: a repeated request finds the operation.
        const request = { route: `POST ${PATH}`, key: idempotencyKey, body: { ...params, body: bodyAsSent } };
        return idempotently(deps, caller, request, { make, answer });
      },
    }),
    defineRoute({
      method: 'get',
      path: PATH,
      operationId: 'readMoveOperation',
      summary: 'Read the move of a participant',
      scope: 'participants:read',
      params: ParticipantPath,
      responses: { 200: { description: 'The operation.', schema: OperationSchema } },
      errors: ['OPERATION_NOT_FOUND'],
      async handle({ caller, params }) {
        const { roomId: room, participantId: id } = params;
        const participant = await deps.statements.findParticipant({ tenant: caller, roomId: room, id });
        if (participant === null) return participantNotFound(deps.reads, caller, room);
        const [operation = null] = await findOperationsOf(deps.reads.sql, 'participant.move', [{ tenant: caller, id }]);
        if (operation === null) throw new PublicError('OPERATION_NOT_FOUND');
        return { status: 200, body: presentOperation(operation) };
      },
    }),
    defineRoute({
      method: 'post',
      path: MANY_PATH,
      operationId: 'moveParticipants',
      summary: 'Move participants to other rooms',
      description: `Moves up to ${MOVES_MAX} participants of a room, each as \`moveParticipant\` does.`,
      scope: 'participants:update',
      idempotent: true,
      params: RoomPath,
      body: MovesBody,
      responses: { 202: { description: 'The moves.', schema: MovesSchema } },
      validate: ({ body }) => duplicates(body['moves']),
      handle: (call) => moveMany(deps, call),
    }),
  ]);
}

async function moveMany(
  deps: Deps,
  {
    caller,
    params,
    body,
    bodyAsSent,
    idempotencyKey,
  }: Call<Static<typeof RoomPath>, unknown, Static<typeof MovesBody>>,
): Promise<Reply> {
  assertOtherRooms(
    params.roomId,
    body.moves.map((move, at) => ({ path: `body.moves[${at}].roomId`, roomId: move.roomId })),
  );
  const make = async () => {
    await requireRoom(deps.database, caller, params.roomId);
    const data: Static<typeof MovesSchema>['data'] = [];
    const wakes: WakeableOperation[] = [];
    // One after the other: each locks the room.
    for (const { participantId, ...target } of body.moves) {
      const moved = await accept(deps, caller, params.roomId, participantId, target);
      if ('refused' in moved) {
        const { code, message } = errorOf(moved);
        data.push({ participantId, operation: null, error: { code, message } });
        continue;
      }
      data.push({ participantId, operation: presentOperation(moved.operation), error: null });
      if (moved.wake !== null) wakes.push(moved.wake);
    }
    if (wakes.length > 0) await deps.producer.wakeOperations(wakes);
    return { data };
  };
  const answer = (made: Awaited<ReturnType<typeof make>>): Reply => ({ status: 202, body: made });
  const request = { route: `POST ${MANY_PATH}`, key: idempotencyKey, body: { ...params, body: bodyAsSent } };
  return idempotently(deps, caller, request, { make, answer });
}

function accept(
  { database, clock }: Pick<Deps, 'database' | 'clock'>,
  tenant: Tenant,
  from: string,
  participantId: string,
  target: Static<typeof MoveBody>,
): Promise<AcceptedOperation | MoveRefused> {
  const input: MoveInput = { roomId: target.roomId, permissions: target.permissions ?? null };
  return acceptParticipantMove(database, tenant, from, participantId, input, clock.now());
}

function errorOf({ refused }: MoveRefused): PublicError {
  switch (refused) {
    case 'not_found':
      return new PublicError('PARTICIPANT_NOT_FOUND');
    case 'removed':
      return new PublicError('PARTICIPANT_REMOVED');
    case 'moved':
      return new PublicError('PARTICIPANT_MOVED');
    case 'room_ended':
      return new PublicError('ROOM_ENDED');
    case 'target_not_found':
      return new PublicError('ROOM_NOT_FOUND', { message: 'The target room was not found in this environment.' });
    case 'target_ended':
      return new PublicError('ROOM_ENDED', { message: 'The target room is ending or has ended.' });
    default:
      return new PublicError(refused);
  }
}

function assertOtherRooms(from: string, targets: readonly { path: string; roomId: string }[]): void {
  const details = targets
    .filter((target) => target.roomId === from)
    .map(({ path }) => ({ path, message: 'must be another room' }));
  if (details.length > 0) throw new PublicError('VALIDATION_FAILED', { details });
}

function duplicates(moves: unknown): ErrorDetail[] {
  if (!Array.isArray(moves)) return [];
  const seen = new Set<unknown>();
  return moves.flatMap((move: { participantId?: unknown } | null, at) => {
    const id = move?.participantId;
    if (typeof id !== 'string' || !seen.has(id)) {
      seen.add(id);
      return [];
    }
    return [{ path: `body.moves[${at}].participantId`, message: 'must be there once' }];
  });
}
