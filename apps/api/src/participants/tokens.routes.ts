import { setImmediate } from 'node:timers/promises';
import {
  EXTERNAL_ID_LENGTH_MAX,
  isOpen,
  newId,
  PARTICIPANT_NAME_LENGTH_MAX,
  PARTICIPANT_ROLE,
  PublicError,
  REGION_PATTERN,
  ROLE_LENGTH_MAX,
  TOKEN_TTL_SECONDS,
  type Tenant,
} from '@callplane/core';
import { insertAnotherToken, listTokens, type IssuedTokenRow } from '@callplane/db';
import jwt from 'jsonwebtoken';
import { Type, type Static } from 'typebox';
import type { Deps } from '../deps.js';
import { idOf } from '../http/cursor.js';
import { listRoute } from '../http/list-route.js';
import { contextOf } from '../http/request-context.js';
import { defineRoute, tagged, type Route } from '../http/route.js';
import {
  metadataObject,
  namedObject,
  oneOf,
  orNull,
  pathId,
  present,
  timestamp,
  trimmedText,
} from '../http/schemas.js';
import { requireRoom, RoomPath } from '../rooms/rooms.routes.js';
import { announce, refuse } from './moderation.routes.js';
import { permissionsGiven } from './participants.routes.js';

const TOKEN_USES = ['unused', 'used', 'expired', 'room_ended', 'revoked'] as const;
type TokenUse = (typeof TOKEN_USES)[number];

const IssuedTokenSchema = namedObject('IssuedToken', {
  id: Type.String({ description: 'The `jti` of the token, `tok_…`.' }),
  participantId: Type.String(),
  participantName: Type.String(),
  permissions: Type.Array(Type.String()),
  state: oneOf(
    TOKEN_USES,
    '`unused` and `used` tokens let their participant join; `used`: it has joined before. `room_ended`: the room ' +
      'ends or has ended.',
  ),
  createdAt: timestamp('When the token was issued.'),
  expiresAt: timestamp('Until when the participant may join with it.'),
  usedAt: orNull(timestamp('When the participant joined with it for the first time.')),
  revokedAt: orNull(timestamp('When the participant was removed, which revokes the token.')),
});

const IssueTokenBody = namedObject('IssueToken', {
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
  role: Type.Optional({
    ...trimmedText(ROLE_LENGTH_MAX, 'Name of the role for your application. It grants nothing: `permissions` do.'),
    default: PARTICIPANT_ROLE,
  }),
  region: Type.Optional(
    Type.String({
      pattern: REGION_PATTERN,
      description:
        'Region of the client, such as `eu-west`: its session goes to a media server of the nearest region first. ' +
        'Default: the region of its gateway. 1-32 lower-case letters, digits and inner hyphens.',
    }),
  ),
  waiting: Type.Optional(
    Type.Boolean({
      description:
        'Whether the participant waits in the lobby until it is admitted. Default: `waitingRoom` of the room. Not with ' +
        '`participantId`.',
    }),
  ),
  participantId: Type.Optional(
    pathId(
      'A participant of the room that the token is for. Without it, the call creates a new participant. The fields that ' +
        'are given change the participant as `updateParticipant` does; it keeps the others, its permissions too.',
    ),
  ),
});

const WAITING_IS_KEPT = {
  path: 'body.waiting',
  message: 'is only for new participants. This one keeps its state: admit it, or remove it',
};

const TokenSchema = namedObject('ParticipantToken', {
  token: Type.String({ description: 'Bearer token (JWT, ES256) for one participant.' }),
  participantId: Type.String({ description: 'The participant of the token.' }),
  tokenId: Type.String({ description: 'Token identifier, `tok_…`.' }),
  expiresAt: timestamp("The token's `exp` as a time."),
});

export function tokenRoutes(deps: Deps): Route[] {
  return tagged('Participants', [
    defineRoute({
      method: 'post',
      path: '/v1/rooms/{roomId}/tokens',
      operationId: 'issueToken',
      summary: 'Issue a participant token',
      description:
        'Every call creates a new participant identity, unless `participantId` names one. Authenticate your own user ' +
        'and check access to the room before you issue a token.',
      scope: 'tokens:create',
      params: RoomPath,
      body: IssueTokenBody,
      responses: { 201: { description: 'The token.', schema: TokenSchema } },
      errors: ['ROOM_ENDED', 'PARTICIPANT_NOT_FOUND', 'PARTICIPANT_REMOVED', 'PARTICIPANT_MOVED'],
      async handle({ caller, params, body, response }) {
        const issued = await issueToken(deps, caller, params.roomId, body);
        const { participantId, tokenId } = issued;
        Object.assign(contextOf(response).logFields, { participantId, tokenId });
        return { status: 201, body: issued };
      },
    }),
    listRoute(deps, {
      path: '/v1/rooms/{roomId}/tokens',
      operationId: 'listTokens',
      summary: 'List issued tokens, newest first',
      description:
        'Shows who may still join with a token, and who has. Begins with the newest participant; the tokens of one ' +
        'follow each other. The tokens themselves are not stored.',
      scope: 'participants:read',
      params: RoomPath,
      item: IssuedTokenSchema,
      items: 'tokens',
      read: ({ caller, params }, { position, limit }) =>
        listTokens(deps.reads.sql, caller, params.roomId, { after: position, limit }),
      position: { participantId: idOf('part'), id: idOf('tok') },
      positionOf: ({ participantId, id }) => ({ participantId, id }),
      onEmpty: ({ caller, params }) => requireRoom(deps.reads, caller, params.roomId),
      present(token) {
        const state = useOf(token, deps.clock.now());
        return present(IssuedTokenSchema, { ...token, state, usedAt: token.connectedAt });
      },
    }),
  ]);
}

function useOf({ revokedAt, expiresAt, connectedAt, isRoomOver }: IssuedTokenRow, now: Date): TokenUse {
  if (revokedAt !== null) return 'revoked';
  if (isRoomOver) return 'room_ended';
  if (expiresAt <= now) return 'expired';
  return connectedAt === null ? 'unused' : 'used';
}

type Issuing = Pick<Deps, 'database' | 'producer' | 'statements' | 'signingKeys' | 'tokens' | 'clock'>;
type Input = Static<typeof IssueTokenBody>;

/** A token whose participant is not known yet. */
interface Draft {
  tenant: Tenant;
  roomId: string;
  token: { id: string; createdAt: Date; expiresAt: Date };
  sign: (participantId: string, permissions: readonly string[]) => string;
}

/** Issues a token for a new participant, or for the one that the request names. */
async function issueToken(deps: Issuing, tenant: Tenant, roomId: string, input: Input) {
  const { participantId, ...given } = input;
  const draft = await draftOf(deps, tenant, roomId, input);
  const issued =
    participantId === undefined
      ? await forNewParticipant(deps, draft, given)
      : await forParticipant(deps, draft, participantId, given);
  return { ...issued, tokenId: draft.token.id, expiresAt: draft.token.expiresAt };
}

async function draftOf(deps: Issuing, tenant: Tenant, roomId: string, input: Input): Promise<Draft> {
  const signer = await deps.signingKeys.signer();
  const createdAt = deps.clock.now();
  const issuedUnixSeconds = Math.floor(createdAt.getTime() / 1000);
  const expiresUnixSeconds = issuedUnixSeconds + (input.ttlSeconds ?? TOKEN_TTL_SECONDS.default);
  const id = newId('token');
  const sign = (participantId: string, permissions: readonly string[]) =>
    jwt.sign(
      {
        iss: deps.tokens.issuer,
        aud: deps.tokens.audience,
        sub: participantId,
        jti: id,
        iat: issuedUnixSeconds,
        nbf: issuedUnixSeconds,
        exp: expiresUnixSeconds,
        projectId: tenant.projectId,
        environmentId: tenant.environmentId,
        roomId,
        name: input.participantName,
        permissions,
        region: input.region,
      },
      signer.privateKey,
      { algorithm: 'ES256', keyid: signer.kid },
    );
  return { tenant, roomId, token: { id, createdAt, expiresAt: new Date(expiresUnixSeconds * 1000) }, sign };
}

async function forParticipant(
  deps: Issuing,
  { tenant, roomId, token, sign }: Draft,
  participantId: string,
  { participantName: name, permissions, metadata, externalId, role, waiting }: Input,
) {
  if (waiting !== undefined) throw new PublicError('VALIDATION_FAILED', { details: [WAITING_IS_KEPT] });
  const given = Object.entries({ name, permissions, metadata, externalId, role }).filter(
    ([, value]) => value !== undefined,
  );
  const fields = Object.fromEntries(given);
  const issued = await insertAnotherToken(deps.database, tenant, roomId, participantId, fields, token);
  if (issued.outcome !== 'updated') return refuse(deps, tenant, roomId, issued.outcome);
  announce(deps, roomId, issued);
  return { token: sign(participantId, issued.permissions), participantId };
}

async function forNewParticipant(deps: Issuing, { tenant, roomId, token: draft, sign }: Draft, input: Input) {
  const participantId = newId('participant');
  const permissions = input.permissions ?? ['room:join'];
  const inserting = deps.statements.insertParticipantIfOpen({
    tenant,
    participant: {
      id: participantId,
      roomId,
      externalId: input.externalId ?? null,
      name: input.participantName,
      metadata: input.metadata ?? {},
      role: input.role ?? PARTICIPANT_ROLE,
      createdAt: draft.createdAt,
      waiting: input.waiting,
      token: { id: draft.id, permissions, expiresAt: draft.expiresAt },
    },
  });
  // The statement leaves at the end of this tick: it runs while the token is signed.
  const [status, token] = await Promise.all([inserting, setImmediate().then(() => sign(participantId, permissions))]);
  if (status === null) throw new PublicError('ROOM_NOT_FOUND');
  if (!isOpen(status)) throw new PublicError('ROOM_ENDED');
  return { token, participantId };
}
