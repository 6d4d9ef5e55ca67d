import { createHash } from 'node:crypto';
import { open, PublicError, seal, type ErrorDetail, type Tenant } from '@callplane/core';
import { findIdempotencyRecord, saveIdempotencyRecord, tryLockIdempotencyKey, type TypedSql } from '@callplane/db';
import type { Request } from 'express';
import type { Deps } from '../deps.js';
import type { Reply } from './route.js';

const KEPT_MS = 24 * 60 * 60 * 1000;

export type IdempotencyDeps = Pick<Deps, 'database' | 'clock' | 'masterKeys'>;

export interface IdempotentRequest {
  /** HTTP method and route pattern. */
  route: string;
  /** Null: the caller sent none, and nothing is recorded. */
  key: string | null;
  /** The body as sent, before trimming and defaults. */
  body: unknown;
  /** Whether the answer contains a secret, so that the record must be encrypted at rest. */
  holdsSecret?: boolean;
}

/** Work that runs once per key. */
export interface IdempotentWork<Made extends object> {
  /**
   * @returns the values that the answer needs and the request body lacks: ids, times, secrets. They are stored as JSON
   *   for 24 hours, so the value must be small and contain no `Date`.
   * @param tx the transaction that also records them; null without a key.
   */
  make(tx: TypedSql | null): Promise<Made>;
  /** Builds the answer, from the new values for the first request or from the stored values for a repeated one. */
  answer(made: Made): Reply;
}

/**
 * Runs the work once per key, and each time without one. The effects of the work and its record commit in one
 * transaction. The record stores the generated values instead of the answer: a repeated request sends the same body, and
 * both together give the same answer.
 * @throws PublicError IDEMPOTENCY_CONFLICT while the first request is in progress, IDEMPOTENCY_KEY_REUSED for another
 *   body.
 */
export async function idempotently<Made extends object>(
  deps: IdempotencyDeps,
  tenant: Tenant,
  request: IdempotentRequest,
  work: IdempotentWork<Made>,
): Promise<Reply> {
  if (request.key === null) return work.answer(await work.make(null));
  const scope = { environmentId: tenant.environmentId, route: request.route, key: request.key };
  const identity = JSON.stringify([scope.environmentId, scope.route, scope.key]);
  const requestHash = sha256(canonicalJson(request.body));
  return deps.database.transaction(async (tx) => {
    if (!(await tryLockIdempotencyKey(tx, sha256(identity).readBigInt64BE())))
      throw new PublicError('IDEMPOTENCY_CONFLICT');
    const now = deps.clock.now();
    const first = await findIdempotencyRecord(tx, scope, now);
    if (first !== null) {
      if (!requestHash.equals(first.requestHash)) throw new PublicError('IDEMPOTENCY_KEY_REUSED');
      const text = request.holdsSecret === true ? open(deps.masterKeys, first.made, identity) : first.made;
      return { ...work.answer(JSON.parse(text) as Made), headers: { 'idempotency-replayed': 'true' } };
    }
    const made = await work.make(tx);
    const text = JSON.stringify(made);
    const kept = request.holdsSecret === true ? seal(deps.masterKeys, text, identity) : text;
    const times = { createdAt: now, expiresAt: new Date(now.getTime() + KEPT_MS) };
    await saveIdempotencyRecord(tx, scope, { requestHash, made: kept }, times);
    return work.answer(made);
  });
}

/** Reads the `Idempotency-Key` of a request: 1 to 255 printable ASCII characters. Adds failures to `details`. */
export function readIdempotencyKey({ headers }: Pick<Request, 'headers'>, details: ErrorDetail[]): string | null {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key === 'string' && /^[\x20-\x7e]{1,255}$/.test(key)) return key;
  details.push({ path: 'headers.idempotency-key', message: 'must be 1 to 255 printable ASCII characters' });
  return null;
}

/** Serialises JSON with sorted keys, so that key order does not affect the result. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`;
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
