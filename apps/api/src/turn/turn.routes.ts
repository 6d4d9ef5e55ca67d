import { environmentSubject, issueTurnCredentials, PATH_ID_PATTERN, PublicError } from '@callplane/core';
import { hasActiveSession } from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { defineRoute, tagged, type Route } from '../http/route.js';
import { namedObject, timestamp } from '../http/schemas.js';

const TurnBody = namedObject(
  'IssueTurnCredentials',
  {
    roomId: Type.Optional(
      Type.String({ pattern: PATH_ID_PATTERN, description: 'Room of the session. Requires sessionId.' }),
    ),
    sessionId: Type.Optional(
      Type.String({ pattern: PATH_ID_PATTERN, description: 'Active participant session. Requires roomId.' }),
    ),
  },
  { dependentRequired: { roomId: ['sessionId'], sessionId: ['roomId'] } },
);

const IceServerSchema = namedObject(
  'IceServer',
  {
    urls: Type.Array(Type.String()),
    username: Type.Optional(Type.String()),
    credential: Type.Optional(Type.String()),
    credentialType: Type.Optional(Type.Literal('password')),
  },
  { description: 'An entry of `RTCConfiguration.iceServers`. STUN entries have `urls` only.' },
);

const TurnCredentialsSchema = namedObject('TurnCredentials', {
  expiresAt: timestamp('When the credentials expire.'),
  username: Type.String(),
  ttlSeconds: Type.Integer(),
  iceServers: Type.Array(IceServerSchema),
});

export function turnRoutes(deps: Deps): Route[] {
  return tagged('TURN', [
    defineRoute({
      method: 'post',
      path: '/v1/turn/credentials',
      operationId: 'issueTurnCredentials',
      summary: 'Issue temporary STUN/TURN credentials',
      description:
        'Send roomId and sessionId to get credentials for an active session, or an empty object to get credentials ' +
        'for the environment. Without a configured relay, the response lists STUN servers only.',
      scope: 'tokens:create',
      body: TurnBody,
      responses: { 201: { description: 'The credentials.', schema: TurnCredentialsSchema } },
      errors: ['SESSION_NOT_FOUND'],
      async handle({ caller, body }) {
        const { roomId, sessionId } = body;
        if (roomId !== undefined && sessionId !== undefined) {
          const active = await hasActiveSession(deps.database.prisma, caller, roomId, sessionId);
          if (!active) throw new PublicError('SESSION_NOT_FOUND');
        }
        const subject = sessionId ?? environmentSubject(caller.environmentId);
        const issued = issueTurnCredentials(deps.turn, subject, deps.clock.now());
        return { status: 201, body: { ...issued, expiresAt: issued.expiresAt.toISOString() } };
      },
    }),
  ]);
}
