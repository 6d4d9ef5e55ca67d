import { boundMessage, type ErrorCode, isOpen, PublicError, SERVER_SENDER, type Tenant } from '@callplane/core';
import { findRecipients } from '@callplane/db';
import { publishRoomMessage } from '@callplane/queue';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { contextOf } from '../http/request-context.js';
import { defineRoute, tagged, type Route } from '../http/route.js';
import { namedObject } from '../http/schemas.js';
import { checkMessageSize } from '../rooms/messages.routes.js';
import type { Reply } from './asks.js';
import { ParticipantPath } from './participants.routes.js';

const TIMEOUT_MS = 15_000;
const TIMEOUT_MS_MAX = 30_000;

const AskParticipantBody = namedObject('AskParticipant', {
  method: Type.String({
    pattern: '^[A-Za-z0-9_.:/-]{1,64}$',
    description: 'The method that a client handles with `call.handle()`.',
  }),
  payload: Type.Optional(Type.Unknown({ description: 'Any JSON value, at most 16 KiB. Null by default.' })),
  timeoutMs: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: TIMEOUT_MS_MAX,
      description: `How long to wait for the answer, in milliseconds; default ${TIMEOUT_MS}.`,
    }),
  ),
});

const AnsweredSchema = namedObject('ParticipantAnswer', {
  payload: Type.Unknown({ description: 'The answer of the participant: any JSON value, at most 16 KiB.' }),
});

const FAILURES: Record<NonNullable<Reply['failure']>, ErrorCode> = {
  no_handler: 'NO_HANDLER',
  handler_failed: 'HANDLER_FAILED',
  response_too_large: 'RESPONSE_TOO_LARGE',
};

export function requestRoutes(deps: Deps): Route[] {
  return tagged('Participants', [
    defineRoute({
      method: 'post',
      path: '/v1/rooms/{roomId}/participants/{participantId}/requests',
      operationId: 'askParticipant',
      summary: 'Ask a participant',
      description:
        'Sends a request to the client of a participant in the room, and answers with its answer. The client handles ' +
        'the method, and needs no permission for that. Nothing is stored. After an error that names no refusal of the ' +
        'request, the client may have handled it.',
      scope: 'participants:update',
      params: ParticipantPath,
      body: AskParticipantBody,
      responses: { 200: { description: 'The answer of the participant.', schema: AnsweredSchema } },
      errors: ['ROOM_ENDED', 'NO_HANDLER', 'HANDLER_FAILED', 'RESPONSE_TOO_LARGE', 'PARTICIPANT_TIMED_OUT'],
      async handle({ caller, params, body: { method, payload = null, timeoutMs = TIMEOUT_MS }, response }) {
        checkMessageSize('payload', payload);
        const { roomId, participantId } = params;
        await requirePresent(deps, caller, roomId, participantId);
        const context = contextOf(response);
        const closed = new AbortController();
        response.once('close', () => closed.abort());
        let sentAtMs = performance.now();
        const send = async (askId: string): Promise<void> => {
          const ask = { type: 'ask', from: SERVER_SENDER, askId, method, payload };
          const text = JSON.stringify({ ...ask, sentAt: deps.clock.now().toISOString() });
          const passed = { from: SERVER_SENDER, to: [participantId], text };
          const isSent =
            deps.asks.isListening && (await publishRoomMessage(deps.producer.redis, roomId, SERVER_SENDER, passed));
          if (!isSent) throw unavailable('The request could not be sent. Try again shortly.');
          sentAtMs = performance.now();
        };
        const { environmentId } = caller;
        const reply = await deps.asks
          .ask({ environmentId, participantId, timeoutMs }, send, closed.signal)
          .finally(() => (context.waitedMs += performance.now() - sentAtMs));
        if (reply === null) {
          await requirePresent(deps, caller, roomId, participantId);
          throw new PublicError('PARTICIPANT_TIMED_OUT');
        }
        if (reply.failure !== undefined) throw failure(reply.failure, reply.payload);
        return { status: 200, body: { payload: reply.payload } };
      },
    }),
  ]);
}

/** @throws PublicError ROOM_NOT_FOUND, ROOM_ENDED or PARTICIPANT_NOT_FOUND */
async function requirePresent(
  { database }: Pick<Deps, 'database'>,
  tenant: Tenant,
  roomId: string,
  participantId: string,
): Promise<void> {
  const found = await findRecipients(database.sql, tenant, roomId, [participantId]);
  if (found === null) throw new PublicError('ROOM_NOT_FOUND');
  if (!isOpen(found.status)) throw new PublicError('ROOM_ENDED');
  if (found.absent.length > 0) {
    throw new PublicError('PARTICIPANT_NOT_FOUND', { message: 'The participant is not in the room at present.' });
  }
}

function failure(kind: NonNullable<Reply['failure']>, payload: unknown): PublicError {
  const isTold = kind === 'handler_failed' && typeof payload === 'string' && payload !== '';
  return new PublicError(FAILURES[kind], isTold ? { message: `The handler has failed: ${boundMessage(payload)}` } : {});
}

function unavailable(message: string): PublicError {
  return new PublicError('UNAVAILABLE', { message, headers: { 'retry-after': '2' } });
}
