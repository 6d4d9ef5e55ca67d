import { PublicError } from '@callplane/core';
import { KEY_PREFIX, type JobProducer, type RedisClient, type RedisTrouble } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { NextFunction, Request, Response } from 'express';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { LocalBuckets, type Taken } from './local-buckets.js';
import { contextOf } from './request-context.js';
import { isRead, type MatchesRoute } from './request-kind.js';

/** A token bucket with `burst` tokens, refilled at `perSecond`. A rate of 0 disables the limit. */
export interface Bucket {
  perSecond: number;
  burst: number;
}

/**
 * Lua script of the token bucket. It replaces the fixed window of rate-limiter-flexible. KEYS[1] is the bucket. ARGV
 * holds, as the library passes them: the requested tokens, a value that this script does not use, the capacity, and the
 * seconds that a full refill takes. If the bucket has the tokens, returns the tokens in use and the milliseconds until
 * it is full. Otherwise returns the milliseconds until it has the requested tokens, and the capacity plus one, because
 * the library refuses a request if more tokens than the capacity are in use.
 */
const TOKEN_BUCKET = `
local capacity, fullMs = tonumber(ARGV[3]), tonumber(ARGV[4]) * 1000
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local state = redis.call('HMGET', KEYS[1], 'used', 'at')
local used = math.max(0, (tonumber(state[1]) or 0) - (nowMs - (tonumber(state[2]) or nowMs)) * capacity / fullMs)
local requested = used + tonumber(ARGV[1])
if requested > capacity then
  return {capacity + 1, math.ceil((requested - capacity) * fullMs / capacity)}
end
redis.call('HSET', KEYS[1], 'used', tostring(requested), 'at', nowMs)
redis.call('PEXPIRE', KEYS[1], math.ceil(fullMs) + 1000)
return {math.ceil(requested), math.ceil(requested * fullMs / capacity)}`;

/**
 * Limits reads and writes per API key. All instances share the limit through Redis. While Redis is unavailable, each
 * instance applies the limit alone. Headers: draft-ietf-httpapi-ratelimit-headers-10.
 */
export function rateLimit(
  { redis, health }: Pick<JobProducer, 'redis' | 'health'>,
  logger: Logger,
  limits: { reads: Bucket; writes: Bucket },
  isUnlimited: MatchesRoute,
) {
  const reads = limiter(redis, 'reads', limits.reads);
  const writes = limiter(redis, 'writes', limits.writes);
  const isShared = sharing(logger);

  return async (request: Request, response: Response, next: NextFunction): Promise<void> => {
    const bucket = isRead(request) ? reads : writes;
    const { caller, headers } = contextOf(response);
    if (bucket === null || caller === null || isUnlimited(request)) {
      next();
      return;
    }
    const shared = isShared(health.trouble) ? await takeShared(bucket.shared, caller.keyId) : null;
    // Redis failed although its health is good (`trouble` is null). Probes it now, because until the probe notices the
    // fault, every request waits for a failing command.
    if (shared === null && health.trouble === null) void health.probe();
    const { refused, remaining, waitMs } = shared ?? bucket.local.take(caller.keyId, performance.now());
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

/** Returns null if Redis fails. */
async function takeShared(limiter: RateLimiterRedis, key: string): Promise<Taken | null> {
  const taken = (result: RateLimiterRes, refused: boolean): Taken => ({
    refused,
    remaining: result.remainingPoints,
    waitMs: result.msBeforeNext,
  });
  try {
    return taken(await limiter.consume(key), false);
  } catch (thrown) {
    return thrown instanceof RateLimiterRes ? taken(thrown, true) : null;
  }
}

function limiter(redis: RedisClient, name: string, { perSecond, burst }: Bucket) {
  if (perSecond === 0) return null;
  const capacity = Math.max(burst, perSecond);
  const refillSeconds = capacity / perSecond;
  return {
    name,
    policy: `"${name}";q=${capacity};w=${Math.ceil(refillSeconds)}`,
    local: new LocalBuckets(capacity, perSecond),
    shared: new RateLimiterRedis({
      storeClient: redis,
      keyPrefix: `${KEY_PREFIX}:rate:${name}`,
      points: capacity,
      duration: refillSeconds,
      customIncrTtlLuaScript: TOKEN_BUCKET,
      rejectIfRedisNotReady: true,
    }),
  };
}
