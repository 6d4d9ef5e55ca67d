import { createPortFilter, PublicError, WEBHOOK_PORTS_DEFAULT, type Caller, type TurnSettings } from '@callplane/core';
import { isDatabaseUnavailable } from '@callplane/db';
import type { Response } from 'express';
import type { Deps } from '../../../apps/api/src/deps.js';
import { EventWaiter, readNewest } from '../../../apps/api/src/events/event-waiter.js';
import type { Reply } from '../../../apps/api/src/http/route.js';
import { SettlementWaiter } from '../../../apps/api/src/operations/settlement-waiter.js';
import { apiRoutes } from '../../../apps/api/src/routes.js';
import type { SigningKeyRing } from '../../../apps/api/src/signing-keys/signing-key-ring.js';
import { ReadLimiter } from '../../../apps/api/src/statements/read-limiter.js';
import { sharedStatements } from '../../../apps/api/src/statements/shared-statements.js';
import { StreamHub, streamReads } from '../../../apps/api/src/stream/stream-hub.js';
import { OverloadedError, systemClock } from '../../../packages/runtime/src/index.js';
import { MASTER_KEYS, SIGNER, TOKENS, openDatabase, type Parts } from './tasks.js';

/** A validated request, as the server passes it on. */
export interface ApiRequest {
  readonly operationId: string;
  readonly caller: Caller;
  readonly params?: Record<string, string>;
  readonly body?: Record<string, unknown>;
  readonly idempotencyKey?: string | null;
}

export interface ApiAnswer {
  readonly status: number;
  readonly code: string | null;
  readonly body: Record<string, unknown>;
  readonly isReplayed: boolean;
  /** The error behind a 500. */
  readonly cause?: unknown;
}

export interface ApiInstance {
  handle(request: ApiRequest): Promise<ApiAnswer>;
}

/** As apps/api/src/main.ts does, without HTTP, keys and rate limits. */
export function startApi({ redis, databaseUrl, logger }: Parts): ApiInstance {
  const database = openDatabase(databaseUrl);
  const reads = openDatabase(databaseUrl, { poolMax: 4 });
  const eventWaiter = new EventWaiter(readNewest(reads));
  const producer = redis.producer();
  const deps: Deps = {
    database,
    reads,
    statements: sharedStatements({
      writes: database.sql,
      reads: reads.sql,
      wake: (deliveries) => producer.wakeDeliveries(deliveries),
    }),
    readLimiter: new ReadLimiter(5),
    producer,
    settlements: new SettlementWaiter(redis.listener()),
    eventWaiter,
    asks: {} as Deps['asks'],
    streams: new StreamHub(
      streamReads(reads, () => undefined),
      eventWaiter,
      systemClock,
    ),
    signingKeys: { signer: () => Promise.resolve(SIGNER) } as unknown as SigningKeyRing,
    masterKeys: MASTER_KEYS,
    turn: {} as TurnSettings,
    tokens: TOKENS,
    webhooks: { allowHttp: false, isAllowed: () => true, isAllowedPort: createPortFilter(WEBHOOK_PORTS_DEFAULT) },
    operationWaitMs: 500,
    console: null,
    recordings: {} as Deps['recordings'],
    logger,
    clock: systemClock,
  };
  const routes = new Map(apiRoutes(deps).map((route) => [route.operationId, route]));
  const answerOf = async ({ operationId, caller, params, body, idempotencyKey }: ApiRequest): Promise<Reply> => {
    const route = routes.get(operationId);
    if (route === undefined) throw new Error(`there is no route ${operationId}`);
    const reply = await route.handle({
      caller,
      params: params ?? {},
      query: {},
      body: body ?? {},
      bodyAsSent: body ?? {},
      cursor: { position: null, encode: () => '' },
      idempotencyKey: idempotencyKey ?? null,
      response: responseWithoutSocket(),
    });
    if (reply === null) throw new Error(`the route ${operationId} answers by itself`);
    return reply;
  };
  return {
    async handle(request) {
      try {
        const { status, body, headers } = await answerOf(request);
        const isReplayed = headers?.['idempotency-replayed'] === 'true';
        return { status, code: null, body: (body ?? {}) as Record<string, unknown>, isReplayed };
      } catch (error) {
        const { status, code, cause } = publicError(error);
        return { status, code, body: {}, isReplayed: false, ...(cause === undefined ? {} : { cause }) };
      }
    },
  };
}

/** For handlers that read headers of their request or its time. */
function responseWithoutSocket(): Response {
  const locals = { context: { startedAtMs: performance.now(), logFields: {} } };
  return { locals, req: { get: () => undefined } } as unknown as Response;
}

function publicError(error: unknown): { status: number; code: string; cause?: unknown } {
  if (error instanceof PublicError) return { status: error.status, code: error.code };
  if (isDatabaseUnavailable(error) || error instanceof OverloadedError) return { status: 503, code: 'UNAVAILABLE' };
  return { status: 500, code: 'INTERNAL', cause: error };
}
