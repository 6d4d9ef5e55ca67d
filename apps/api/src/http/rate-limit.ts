import { bucketTimes, KeyedPace, PublicError } from '@callplane/core';
import { KEY_PREFIX, type JobProducer, type RedisClient, type RedisTrouble } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { RequestHandler } from 'express';
import { contextOf, isRead } from './request-context.js';

/** A token bucket with `burst` tokens, refilled at `perSecond`. A rate of 0 disables the limit. */
export interface Bucket {
  perSecond: number;
  burst: number;
}

/** Callers whose buckets one process keeps. A bucket is a number. */
const CALLERS_MAX = 10_000;

/**
 * The token bucket in Redis, under KEYS[1]. ARGV: the capacity, and the milliseconds that a full refill takes. Returns
 * whether the request is refused, the whole tokens left, and the wait: {@link Taken}.
 */
const TAKE_TOKEN = `
local capacity, fullMs = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local state = redis.call('HMGET', KEYS[1], 'used', 'at')
local at = tonumber(state[2]) or nowMs
-- A time in the future: the clock of Redis was set back, or somebody else has written it.
local refilledMs = at <= nowMs and nowMs - at or fullMs
local used = math.max(0, math.min(capacity, tonumber(state[1]) or 0) - refilledMs * capacity / fullMs)
local requested = used + 1
if requested > capacity then
  return {1, 0, math.ceil((requested - capacity) * fullMs / capacity)}
end
redis.call('HSET', KEYS[1], 'used', tostring(requested), 'at', nowMs)
redis.call('PEXPIRE', KEYS[1], math.ceil(fullMs) + 1000)
return {0, math.floor(capacity - requested), math.ceil(requested * fullMs / capacity)}`;

/**
 * Limits reads and writes per API key. All instances share the limit through Redis. While Redis is unavailable, each
 * instance applies the limit alone. Headers: draft-ietf-httpapi-ratelimit-headers-10.
 */
export function rateLimit(
  { redis, health }: Pick<JobProducer, 'redis' | 'health'>,
  logger: Logger,
  limits: { reads: Bucket; writes: Bucket },
): RequestHandler {
  const reads = limiter(redis, 'reads', limits.reads);
  const writes = limiter(redis, 'writes', limits.writes);
  const isShared = sharing(logger);

  return async (request, response, next) => {
    const bucket = isRead(request) ? reads : writes;
    const { caller, headers } = contextOf(response);
    if (bucket === null || caller === null) {
      next();
      return;
    }
    const shared = isShared(health.trouble) ? await bucket.takeShared(caller.keyId) : null;
    // Redis failed although its health is good (`trouble` is null). Probes it now, because until the probe notices the
    // fault, every request waits for a failing command.
    if (shared === null && health.trouble === null) void health.probeAll();
    const { refused, remaining, waitMs } = shared ?? bucket.takeLocal(caller.keyId, performance.now());
    const seconds = Math.max(1, Math.ceil(waitMs / 1000));
    headers['ratelimit-policy'] = bucket.policy;
    headers['ratelimit'] = `"${bucket.name}";r=${remaining};t=${seconds}`;
    if (refused) throw new PublicError('RATE_LIMITED', { headers: { 'retry-after': String(seconds) } });
    next();
  };
}

/** Returns a function that decides whether to use Redis, and that logs each change once. */
function sharing(logger: Logger): (trouble: RedisTrouble | null) => boolean {
  let before: RedisTrouble | null = null;
  return (trouble) => {
    if (trouble !== null && before === null) logger.warn('rate limits local', { reason: trouble });
    if (trouble === null && before !== null) logger.info('rate limits shared');
    before = trouble;
    return trouble === null;
  };
}

function limiter(redis: RedisClient, name: string, { perSecond, burst }: Bucket) {
  if (perSecond === 0) return null;
  const capacity = Math.max(burst, perSecond);
  const refillSeconds = capacity / perSecond;
  const times = bucketTimes({ perSecond, burst: capacity });
  const buckets = new KeyedPace(times, CALLERS_MAX);
  const prefix = `${KEY_PREFIX}:rate:${name}`;
  redis.defineCommand('takeToken', { numberOfKeys: 1, lua: TAKE_TOKEN });
  const { takeToken } = redis as unknown as Record<'takeToken', TakeToken>;
  return {
    name,
    policy: `"${name}";q=${capacity};w=${Math.ceil(refillSeconds)}`,
    /** Every instance has buckets of its own, so N instances together allow N times the rate. */
    takeLocal: (caller: string, nowMs: number): Taken => {
      const waitMs = Math.ceil(buckets.waitMs(caller, nowMs));
      if (waitMs > 0) return { refused: true, remaining: 0, waitMs };
      const fullInMs = buckets.charge(caller, nowMs);
      const remaining = Math.floor(capacity - fullInMs / times.intervalMs);
      return { refused: false, remaining, waitMs: Math.ceil(fullInMs) };
    },
    /** Null if Redis fails. */
    takeShared: async (caller: string): Promise<Taken | null> => {
      try {
        const [refused, remaining, waitMs] = await takeToken.call(
          redis,
          `${prefix}:${caller}`,
          capacity,
          refillSeconds * 1000,
        );
        return { refused: refused === 1, remaining, waitMs };
      } catch {
        return null;
      }
    },
  };
}

type TakeToken = (
  key: string,
  capacity: number,
  fullMs: number,
) => Promise<[refused: 0 | 1, remaining: number, waitMs: number]>;

interface Taken {
  refused: boolean;
  /** Whole tokens left in the bucket. */
  remaining: number;
  /** Until the next token if the request is refused, otherwise until the bucket is full. */
  waitMs: number;
}
