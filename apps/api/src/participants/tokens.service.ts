import {
  isOpen,
  newId,
  PARTICIPANT_ROLE,
  PublicError,
  TOKEN_TTL_SECONDS,
  type Permission,
  type Tenant,
} from '@callplane/core';
import jwt from 'jsonwebtoken';
import type { Deps } from '../deps.js';

export interface TokenInput {
  participantName: string;
  permissions?: Permission[];
  metadata?: Record<string, unknown>;
  ttlSeconds?: number;
  externalId?: string;
}

export interface IssuedToken {
  token: string;
  participantId: string;
  tokenId: string;
  expiresAt: Date;
}

/** Issues a participant token. Every call creates a new participant; it never renews the token of an existing one. */
export async function issueToken(
  deps: Pick<Deps, 'statements' | 'signingKeys' | 'tokens' | 'clock'>,
  tenant: Tenant,
  roomId: string,
  input: TokenInput,
): Promise<IssuedToken> {
  const signer = await deps.signingKeys.signer();
  const now = deps.clock.now();
  const issuedUnixSeconds = Math.floor(now.getTime() / 1000);
  const expiresUnixSeconds = issuedUnixSeconds + (input.ttlSeconds ?? TOKEN_TTL_SECONDS.default);
  const expiresAt = new Date(expiresUnixSeconds * 1000);
  const participantId = newId('participant');
  const tokenId = newId('token');
  const permissions = input.permissions ?? ['room:join'];
  const status = await deps.statements.insertParticipantIfOpen({
    tenant,
    participant: {
      id: participantId,
      roomId,
      externalId: input.externalId ?? null,
      name: input.participantName,
      metadata: input.metadata ?? {},
      role: PARTICIPANT_ROLE,
      createdAt: now,
      token: { id: tokenId, permissions, expiresAt },
    },
  });
  if (status === null) throw new PublicError('ROOM_NOT_FOUND');
  if (!isOpen(status)) throw new PublicError('ROOM_ENDED');
  const token = jwt.sign(
    {
      iss: deps.tokens.issuer,
      aud: deps.tokens.audience,
      sub: participantId,
      jti: tokenId,
      iat: issuedUnixSeconds,
      nbf: issuedUnixSeconds,
      exp: expiresUnixSeconds,
      projectId: tenant.projectId,
      environmentId: tenant.environmentId,
      roomId,
      name: input.participantName,
      permissions,
    },
    signer.privateKey,
    { algorithm: 'ES256', keyid: signer.kid },
  );
  return { token, participantId, tokenId, expiresAt };
}
