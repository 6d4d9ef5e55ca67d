import { RedisHealth, RedisUnusable, troubleOf, type RedisTrouble } from './redis-health.js';
import { parseRedisUrl, textOf, type RedisLocation } from './redis-target.js';
import { connectRedis, disconnectRedis, type RedisClient } from './redis.js';
import { askSentinel, fieldsOf, type SentinelTarget } from './sentinels.js';

/** The facts from `INFO` that Callplane depends on, of the server that holds its keys. */
export interface RedisFacts {
  version: string;
  /** Must be `noeviction`, otherwise Redis evicts jobs under memory pressure. Null if the server does not report it. */
  maxmemoryPolicy: string | null;
  /** Whether jobs survive a restart of Redis. If they do not, scans of the workers find the rows of lost jobs. */
  appendOnly: boolean;
  /** Whether the last write of the append-only file, its last rewrite and the last snapshot succeeded. */
  isPersisting: boolean;
  /** `master` or `slave`. */
  role: string;
  replicas: number;
  usedBytes: number;
  /** `maxmemory`; 0 if there is no limit. */
  maxBytes: number;
  /** Memory of the machine; 0 if the server does not report it. */
  systemBytes: number;
}

/** The findings of `rtc doctor` over a connection of its own. */
export interface RedisExamination extends RedisFacts {
  /** Why Redis rejects writes or jobs; null if it accepts them. */
  trouble: RedisTrouble | null;
  /** Processes that subscribe to the notices of APIs and gateways; null if Redis does not tell. */
  listeners: number | null;
}

/** How long an interactive command waits for Redis, in milliseconds. */
const PATIENCE_MS = 3000;

/** Resolves once commands can be sent. @throws RedisUnusable with the first reason why they cannot. */
export function untilReady(redis: RedisClient): Promise<void> {
  return new Promise((resolve, reject) => {
    // Connected, but the server does not answer.
    const timer = setTimeout(() => reject(new RedisUnusable('frozen')), PATIENCE_MS);
    redis.once('ready', () => {
      clearTimeout(timer);
      resolve();
    });
    redis.once('error', (error: Error) => {
      clearTimeout(timer);
      reject(new RedisUnusable(troubleOf(error), error));
    });
  });
}

/**
 * Runs `work` with a connection of its own, for commands that exit afterwards.
 * @throws RedisUnusable if Redis cannot be reached.
 */
export async function overRedis<T>(where: RedisLocation, work: (redis: RedisClient) => Promise<T>): Promise<T> {
  const redis = connectRedis(where, 'command', { onLost: () => undefined, onReady: () => undefined });
  try {
    await untilReady(redis);
    return await work(redis);
  } finally {
    await disconnectRedis(redis);
  }
}

export async function observeRedis(redis: RedisClient): Promise<RedisFacts> {
  return factsOf(await redis.info());
}

/**
 * @param channel that every API and gateway subscribes to.
 * @throws RedisUnusable if Redis cannot be reached.
 */
export async function examineRedis(where: RedisLocation, channel: string): Promise<RedisExamination> {
  return overRedis(where, async (redis) => {
    const facts = await observeRedis(redis);
    const listeners = await redis.pubsub('NUMSUB', channel).then(
      ([, count]) => Number(count),
      () => null,
    );
    const health = new RedisHealth(redis);
    await health.probe();
    health.close();
    return { ...facts, trouble: health.trouble, listeners };
  });
}

function factsOf(info: string): RedisFacts {
  const field = (name: string): string | null => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? null;
  const succeeded = (name: string): boolean => (field(name) ?? 'ok') === 'ok';
  return {
    // Valkey reports a version of Redis that it is compatible with.
    version: field('redis_version') ?? 'unknown',
    maxmemoryPolicy: field('maxmemory_policy'),
    appendOnly: field('aof_enabled') === '1',
    isPersisting: ['aof_last_write_status', 'aof_last_bgrewrite_status', 'rdb_last_bgsave_status'].every(succeeded),
    role: field('role') ?? 'unknown',
    replicas: info.match(/^slave\d+:.*state=online/gm)?.length ?? 0,
    usedBytes: Number(field('used_memory') ?? 0),
    maxBytes: Number(field('maxmemory') ?? 0),
    systemBytes: Number(field('total_system_memory') ?? 0),
  };
}

export interface SentinelFacts {
  /** Sentinels in REDIS_URL, and how many of them answer. */
  named: number;
  answering: number;
  failures: string[];
  /** Sentinels that the answering ones know, themselves included: the most that one of them knows. */
  known: number;
  /** Addresses that they name as the master. More than one for a moment after a promotion. */
  masters: string[];
  /** Why a promotion would find no agreement now; null if it would. */
  quorumProblem: string | null;
}

export async function readSentinelFacts(where: RedisLocation): Promise<SentinelFacts | null> {
  const target = typeof where === 'string' ? parseRedisUrl(where) : where;
  if (target.kind !== 'sentinel') return null;
  const answers = await Promise.allSettled(target.sentinels.map((sentinel) => askOne(target, sentinel)));
  const good = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  const problems = good.map(({ quorumProblem }) => quorumProblem);
  return {
    named: answers.length,
    answering: good.length,
    failures: answers.flatMap((answer) => (answer.status === 'rejected' ? [(answer.reason as Error).message] : [])),
    known: Math.max(0, ...good.map(({ known }) => known)),
    masters: [...new Set(good.map(({ master }) => master))],
    // One Sentinel that sees enough others can lead a promotion.
    quorumProblem: good.length === 0 || problems.includes(null) ? null : (problems[0] ?? null),
  };
}

async function askOne(target: SentinelTarget, sentinel: SentinelTarget['sentinels'][number]) {
  try {
    const fields = fieldsOf(await askSentinel(target, sentinel, 'MASTER'));
    const quorum = await askSentinel(target, sentinel, 'CKQUORUM').then(
      () => null,
      (error: unknown) => (error as Error).message,
    );
    return {
      master: textOf({ host: fields['ip'] ?? '', port: Number(fields['port']) }),
      known: Number(fields['num-other-sentinels']) + 1,
      quorumProblem: quorum,
    };
  } catch (error) {
    throw new Error(`${textOf(sentinel)}: ${(error as Error).message}`, { cause: error });
  }
}
