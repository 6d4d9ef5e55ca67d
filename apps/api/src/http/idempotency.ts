import { createHash } from 'node:crypto';
import { open, PublicError, seal, type Clock, type ErrorDetail, type MasterKeys, type Tenant } from '@callplane/core';
import {
  findIdempotencyRecord,
  saveIdempotencyRecord,
  tryLockIdempotencyKey,
  type Database,
  type Db,
} from '@callplane/db';
import type { Request } from 'express';
import type { Reply } from './route.js';

/** How long the first answer is kept. */
const KEPT_MS = 24 * 60 * 60 * 1000;

/** The `Idempotency-Key` of a request, if any: 1 to 255 printable ASCII characters. Failures go to `details`. */
export function readIdempotencyKey(request: Request, details: ErrorDetail[]): string | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key === 'string' && /^[\x20-\x7e]{1,255}$/.test(key)) return key;
  details.push({ path: 'headers.idempotency-key', message: 'must be 1 to 255 printable ASCII characters' });
  return null;
}

export interface IdempotencyDeps {
  database: Database;
  clock: Clock;
  masterKeys: MasterKeys;
}

export interface IdempotentRequest {
  /** Method and route pattern. */
  route: string;
  key: string;
  /** The body as it was sent. */
  body: unknown;
  /** Whether the answer holds a secret and must be sealed at rest. */
  holdsSecret?: boolean;
}

/**
 * Does the work once per key: its effects and the record of its answer commit together.
 * @throws PublicError IDEMPOTENCY_CONFLICT while the first request is under way, IDEMPOTENCY_KEY_REUSED for another body.
 */
export async function idempotently(
  deps: IdempotencyDeps,
  tenant: Tenant,
  request: IdempotentRequest,
  work: (tx: Db) => Promise<Reply>,
): Promise<Reply> {
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
      const text =
        request.holdsSecret === true ? open(deps.masterKeys, first.responseBody, identity) : first.responseBody;
      return {
        status: first.responseStatus,
        body: JSON.parse(text) as object,
        headers: { 'idempotency-replayed': 'true' },
      };
    }
    const reply = await work(tx);
    const text = JSON.stringify(reply.body);
    await saveIdempotencyRecord(
      tx,
      scope,
      {
        requestHash: new Uint8Array(requestHash),
        responseStatus: reply.status,
        responseBody: request.holdsSecret === true ? seal(deps.masterKeys, text, identity) : text,
      },
      { createdAt: now, expiresAt: new Date(now.getTime() + KEPT_MS) },
    );
    return reply;
  });
}

/** The same text for the same JSON, whatever the order of its keys. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`;
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
