import type { Deps } from '../deps.js';
import { idempotently } from '../http/idempotency.js';
import { defineRoute, type Reply, type Route } from '../http/route.js';
import { SendMessageBody, SentMessageSchema } from './messages.schemas.js';
import { checkSize, sendMessage } from './messages.service.js';
import { RoomPath } from './rooms.schemas.js';

const PATH = '/v1/rooms/{roomId}/messages';

export function messageRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'post',
      path: PATH,
      operationId: 'sendMessage',
      summary: 'Send a message to participants',
      description:
        'Sends data to everyone in the room, or to some participants. Clients get it as a `message` from `server`. The ' +
        'message reaches clients that are connected, and is not stored.',
      tag: 'Rooms',
      scope: 'participants:update',
      idempotent: true,
      params: RoomPath,
      body: SendMessageBody,
      responses: { 202: { description: 'The message is on its way.', schema: SentMessageSchema } },
      errors: ['ROOM_NOT_FOUND', 'PARTICIPANT_NOT_FOUND', 'ROOM_ENDED'],
      async handle({ caller, params, body, bodyAsSent, idempotencyKey }) {
        checkSize(body.data);
        const make = () => sendMessage(deps, caller, params.roomId, body);
        const answer = (made: Awaited<ReturnType<typeof make>>): Reply => ({ status: 202, body: made });
        if (idempotencyKey === null) return answer(await make());
        // Sent before the commit: a failed one is sent again by the repetition, and at worst a message arrives twice.
        const request = { route: `POST ${PATH}`, key: idempotencyKey, body: { ...params, body: bodyAsSent } };
        return idempotently(deps, caller, request, { make, answer });
      },
    }),
  ];
}
