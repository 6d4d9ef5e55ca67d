import {
  isOpen,
  MESSAGE_BYTES_MAX,
  MESSAGE_RECIPIENTS_MAX,
  PATH_ID_PATTERN,
  PublicError,
  SERVER_SENDER,
  type Tenant,
} from '@callplane/core';
import { findRecipients } from '@callplane/db';
import { publishRoomMessage } from '@callplane/queue';
import { Type, type Static } from 'typebox';
import type { Deps } from '../deps.js';
import { idempotently } from '../http/idempotency.js';
import { defineRoute, tagged, type Reply, type Route } from '../http/route.js';
import { namedObject, timestamp } from '../http/schemas.js';
import { RoomPath } from './rooms.routes.js';

const SendMessageBody = namedObject('SendMessage', {
  data: Type.Unknown({ description: 'Any JSON value, at most 16 KiB.' }),
  to: Type.Optional(
    Type.Array(Type.String({ pattern: PATH_ID_PATTERN }), {
      minItems: 1,
      maxItems: MESSAGE_RECIPIENTS_MAX,
      uniqueItems: true,
      description: 'Participants that get the message. Everyone in the room by default.',
    }),
  ),
});

const SentMessageSchema = namedObject('SentMessage', {
  sentAt: timestamp('The `sentAt` of the message.'),
  recipients: Type.Integer({ description: 'Number of participants in the room that the message is for.' }),
});

const PATH = '/v1/rooms/{roomId}/messages';

export function messageRoutes(deps: Deps): Route[] {
  return tagged('Rooms', [
    defineRoute({
      method: 'post',
      path: PATH,
      operationId: 'sendMessage',
      summary: 'Send a message to participants',
      description:
        'Sends data to everyone in the room, or to some participants. Clients get it as a `message` from `server`. The ' +
        'message reaches clients that are connected, and is not stored.',
      scope: 'participants:update',
      idempotent: true,
      params: RoomPath,
      body: SendMessageBody,
      responses: { 202: { description: 'The message is on its way.', schema: SentMessageSchema } },
      errors: ['PARTICIPANT_NOT_FOUND', 'ROOM_ENDED'],
      async handle({ caller, params, body, bodyAsSent, idempotencyKey }) {
        checkMessageSize('data', body.data);
        const make = () => sendMessage(deps, caller, params.roomId, body);
        const answer = (made: Awaited<ReturnType<typeof make>>): Reply => ({ status: 202, body: made });
        // Sent before the commit: a failed one is sent again by the repetition, and at worst a message arrives twice.
        const request = { route: `POST ${PATH}`, key: idempotencyKey, body: { ...params, body: bodyAsSent } };
        return idempotently(deps, caller, request, { make, answer });
      },
    }),
  ]);
}

/** `Retry-After` in seconds while Redis does not answer. */
const RETRY_AFTER_SECONDS = 2;

/** @throws PublicError PAYLOAD_TOO_LARGE */
export function checkMessageSize(field: string, value: unknown): void {
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes <= MESSAGE_BYTES_MAX) return;
  throw new PublicError('PAYLOAD_TOO_LARGE', {
    message: 'The message is too large.',
    details: [{ path: `body.${field}`, message: `must be at most ${MESSAGE_BYTES_MAX} bytes of JSON, not ${bytes}` }],
  });
}

/**
 * Sends a message of the server to the participants of a room, over the gateways that hold their connections. Like a
 * message of a participant, it reaches connected participants, and is not stored.
 */
async function sendMessage(
  deps: Pick<Deps, 'database' | 'clock' | 'producer'>,
  tenant: Tenant,
  roomId: string,
  { data, to }: Static<typeof SendMessageBody>,
): Promise<{ sentAt: string; recipients: number }> {
  const found = await findRecipients(deps.database.sql, tenant, roomId, to ?? null);
  if (found === null) throw new PublicError('ROOM_NOT_FOUND');
  if (!isOpen(found.status)) throw new PublicError('ROOM_ENDED');
  if (found.absent.length > 0) {
    throw new PublicError('PARTICIPANT_NOT_FOUND', {
      message: 'Some recipients are not in the room. The message was not sent.',
      details: found.absent.map((id) => ({ path: 'body.to', message: `${id} is not in the room` })),
    });
  }
  const sentAt = deps.clock.now().toISOString();
  // The gateways pass the text on as it is.
  const text = JSON.stringify({ type: 'message', from: SERVER_SENDER, data, sentAt });
  const passed = { from: SERVER_SENDER, to: to ?? null, text };
  if (!(await publishRoomMessage(deps.producer.redis, roomId, SERVER_SENDER, passed))) {
    throw new PublicError('UNAVAILABLE', {
      message: 'The message could not be sent. Try again shortly.',
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    });
  }
  return { sentAt, recipients: found.present };
}
