import { PATH_ID_PATTERN, PERMISSIONS, type Permission, type Tenant } from '@callplane/core';
import jwt from 'jsonwebtoken';
import type { VerificationKeys } from './verification-keys.js';

/** The claims of a valid token. */
export interface TokenClaims {
  tenant: Tenant;
  roomId: string;
  participantId: string;
  tokenId: string;
  permissions: Permission[];
}

export type VerifiedToken =
  | { ok: true; claims: TokenClaims }
  | { ok: false; reason: 'invalid_token' | 'token_expired'; why: string };

/** Tolerated difference between the clocks of the token's issuer and this process, in seconds. */
const CLOCK_TOLERANCE_SECONDS = 5;
const ID = new RegExp(PATH_ID_PATTERN);

/**
 * Verifies a participant token. The algorithm is pinned to ES256, whatever the token's header says.
 * @throws if the keys cannot be loaded.
 */
export async function verifyToken(
  keys: Pick<VerificationKeys, 'find'>,
  expected: { issuer: string; audience: string },
  token: string,
  now: Date,
): Promise<VerifiedToken> {
  const refused = (why: string): VerifiedToken => ({ ok: false, reason: 'invalid_token', why });
  const kid = keyIdOf(token);
  if (kid === null) return refused('no key id');
  const key = await keys.find(kid);
  if (key === null) return refused('unknown key id');
  let payload: unknown;
  try {
    payload = jwt.verify(token, key, {
      algorithms: ['ES256'],
      issuer: expected.issuer,
      audience: expected.audience,
      clockTimestamp: Math.floor(now.getTime() / 1000),
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
    });
  } catch (error) {
    if (error instanceof jwt.TokenExpiredError) return { ok: false, reason: 'token_expired', why: 'expired' };
    return refused(error instanceof Error ? error.message : 'signature or claims invalid');
  }
  const claims = readClaims(payload);
  return claims === null ? refused('invalid claims') : { ok: true, claims };
}

function keyIdOf(token: string): string | null {
  try {
    const kid: unknown = jwt.decode(token, { complete: true })?.header.kid;
    return typeof kid === 'string' && kid.length <= 128 ? kid : null;
  } catch {
    return null;
  }
}

function readClaims(payload: unknown): TokenClaims | null {
  if (typeof payload !== 'object' || payload === null) return null;
  const { sub, jti, exp, projectId, environmentId, roomId, permissions } = payload as Record<string, unknown>;
  const ids = [sub, jti, projectId, environmentId, roomId];
  if (!ids.every((id) => typeof id === 'string' && ID.test(id))) return null;
  if (typeof exp !== 'number' || !Array.isArray(permissions)) return null;
  const known = PERMISSIONS.filter((permission) => permissions.includes(permission));
  if (!known.includes('room:join')) return null;
  return {
    tenant: { projectId: projectId as string, environmentId: environmentId as string },
    roomId: roomId as string,
    participantId: sub as string,
    tokenId: jti as string,
    permissions: known,
  };
}
