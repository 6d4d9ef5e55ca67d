import { PublicError } from '@callplane/core';
import type { Redis } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { NextFunction, Request, Response } from 'express';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { contextOf } from './request-context.js';

/** A token bucket: `burst` tokens, refilled at `perSecond`; a rate of 0 means no limit. */
export interface Bucket {
  perSecond: number;
  burst: number;
}

/** For how long a Redis that did not answer is left alone, in milliseconds: a frozen one must not slow every request. */
const REDIS_AWAY_MS = 1000;

/**
 * The token bucket that rate-limiter-flexible runs in place of its fixed window. KEYS[1]: bucket; ARGV: tokens wanted,
 * (unused), capacity, seconds to refill all of it. Returns tokens in use and milliseconds: until the bucket is full
 * again or, when it is empty (one more than its capacity is returned), until the wanted tokens are there.
 */
const TOKEN_BUCKET = `
local capacity, fullMs = tonumber(ARGV[3]), tonumber(ARGV[4]) * 1000
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local state = redis.call('HMGET', KEYS[1], 'used', 'at')
local used = math.max(0, (tonumber(state[1]) or 0) - (nowMs - (tonumber(state[2]) or nowMs)) * capacity / fullMs)
local wanted = used + tonumber(ARGV[1])
if wanted > capacity then
  return {capacity + 1, math.ceil((wanted - capacity) * fullMs / capacity)}
end
redis.call('HSET', KEYS[1], 'used', tostring(wanted), 'at', nowMs)
redis.call('PEXPIRE', KEYS[1], math.ceil(fullMs) + 1000)
return {math.ceil(wanted), math.ceil(wanted * fullMs / capacity)}`;

/**
 * Limits reads and writes per API key. Redis away means no limit, not no service.
 * Headers: draft-ietf-httpapi-ratelimit-headers-10.
 */
export function rateLimit(redis: Redis, logger: Logger, limits: { reads: Bucket; writes: Bucket }) {
  const reads = limiter(redis, 'reads', limits.reads);
  const writes = limiter(redis, 'writes', limits.writes);
  let awayUntilMs = 0;

  return async (request: Request, response: Response, next: NextFunction): Promise<void> => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const bucket = isRead ? reads : writes;
    // `GET /v1/` answers nothing but 200 and 401.
    const exempt = isRead && (request.path === '/' || request.path === '');
    const { caller, headers } = contextOf(response);
    if (bucket === null || caller === null || exempt || performance.now() < awayUntilMs) {
      next();
      return;
    }
    let result: RateLimiterRes;
    let refused = false;
    try {
      result = await bucket.limiter.consume(caller.keyId);
    } catch (thrown) {
      if (!(thrown instanceof RateLimiterRes)) {
        awayUntilMs = performance.now() + REDIS_AWAY_MS;
        logger.warn('rate limit unavailable', { error: thrown });
        next();
        return;
      }
      result = thrown;
      refused = true;
    }
    const seconds = Math.max(1, Math.ceil(result.msBeforeNext / 1000));
    headers['ratelimit-policy'] = bucket.policy;
    headers['ratelimit'] = `"${bucket.name}";r=${result.remainingPoints};t=${seconds}`;
    if (refused) throw new PublicError('RATE_LIMITED', { headers: { 'retry-after': String(seconds) } });
    next();
  };
}

function limiter(redis: Redis, name: string, { perSecond, burst }: Bucket) {
  if (perSecond === 0) return null;
  const capacity = Math.max(burst, perSecond);
  const refillSeconds = capacity / perSecond;
  return {
    name,
    policy: `"${name}";q=${capacity};w=${Math.ceil(refillSeconds)}`,
    limiter: new RateLimiterRedis({
      storeClient: redis,
      keyPrefix: `callplane:rate:${name}`,
      points: capacity,
      duration: refillSeconds,
      customIncrTtlLuaScript: TOKEN_BUCKET,
      rejectIfRedisNotReady: true,
    }),
  };
}
