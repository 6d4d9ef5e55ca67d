import { createPublicKey, type KeyObject } from 'node:crypto';
import { PATH_ID_PATTERN, PERMISSIONS, REGION_PATTERN, type Permission, type Tenant } from '@callplane/core';
import jwt from 'jsonwebtoken';

export interface TokenClaims {
  tenant: Tenant;
  roomId: string;
  participantId: string;
  tokenId: string;
  permissions: Permission[];
  /** Null: the region of the gateway. */
  region: string | null;
}

export type VerifiedToken =
  | { ok: true; claims: TokenClaims }
  | { ok: false; reason: 'invalid_token' | 'token_expired'; why: string };

/** Tolerated difference between the clocks of the token's issuer and this process, in seconds. */
const CLOCK_TOLERANCE_SECONDS = 5;
const ID = new RegExp(PATH_ID_PATTERN);
const REGION = new RegExp(REGION_PATTERN);

/** The algorithm is pinned to ES256, whatever the token's header says. @throws if the keys cannot be loaded. */
export async function verifyToken(
  keys: Pick<VerificationKeys, 'find'>,
  expected: { issuer: string; audience: string },
  token: string,
  now: Date,
  { mayBeExpired = false } = {},
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
      ignoreExpiration: mayBeExpired,
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
  const { sub, jti, exp, projectId, environmentId, roomId, permissions, region } = payload as Record<string, unknown>;
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
    region: typeof region === 'string' && REGION.test(region) ? region : null,
  };
}

export interface VerificationJwk {
  kid: string;
  kty: string;
  crv: string;
  x: string;
  y: string;
}

/** Maximum age of the loaded keys, in milliseconds. A retired key verifies tokens for at most this much longer. */
const FRESH_MS = 30_000;
/** Minimum pause between reloads for unknown key ids, in milliseconds. Any client can send such an id. */
const UNKNOWN_KID_PAUSE_MS = 1000;

export class VerificationKeys {
  /** The latest load, which may still run; null if it has failed, or began before a rotation. */
  #loaded: Promise<ReadonlyMap<string, KeyObject>> | null = null;
  #loadedAtMs = -Infinity;

  constructor(
    private readonly load: () => Promise<VerificationJwk[]>,
    private readonly monotonicMs: () => number = () => performance.now(),
  ) {}

  /** @returns null if no such key is published. @throws if the keys have to be loaded and cannot be. */
  async find(kid: string): Promise<KeyObject | null> {
    const loaded = this.#loaded !== null && this.#ageMs <= FRESH_MS ? this.#loaded : this.#reload();
    const known = (await loaded).get(kid);
    if (known !== undefined) return known;
    return this.#ageMs < UNKNOWN_KID_PAUSE_MS ? null : ((await this.#reload()).get(kid) ?? null);
  }

  /** Call this when keys are rotated: a `find` from now on uses keys whose load began after this call. */
  expire(): void {
    this.#loaded = null;
  }

  get #ageMs(): number {
    return this.monotonicMs() - this.#loadedAtMs;
  }

  #reload(): Promise<ReadonlyMap<string, KeyObject>> {
    const loaded = this.load().then(
      (jwks) => new Map(jwks.map(({ kid, ...jwk }) => [kid, createPublicKey({ key: jwk, format: 'jwk' })])),
    );
    loaded.catch(() => {
      if (this.#loaded === loaded) this.#loaded = null;
    });
    this.#loaded = loaded;
    this.#loadedAtMs = this.monotonicMs();
    return loaded;
  }
}
