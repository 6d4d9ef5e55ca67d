import type { Backlog, RunningApp } from '@callplane/db';
import type { QueueDepth, RedisFacts, RedisTrouble } from '@callplane/queue';
import { failure, ok, warning, type Finding } from './findings.js';

const REDIS_MEMORY_SHARE_MAX = 0.8;
/** Due rows wait for wake-ups, scans and slots for less. An older row waits for workers. */
const BACKLOG_AGE_MS_MAX = 60_000;
/** A worker scans PostgreSQL at least every 10 s. One that has run no statement for longer does not work. */
const SILENT_MS_MAX = 20_000;

const seconds = (ms: number): string => `${(Math.max(0, ms) / 1000).toFixed(1)} s`;

/**
 * @param running the processes that are connected to PostgreSQL. Their latest statements prove that they work, whatever
 *   state Redis is in.
 * @param depths the queue depths in Redis; null if Redis cannot be queried.
 */
export function checkQueue(
  backlog: Backlog,
  running: readonly RunningApp[],
  depths: readonly QueueDepth[] | null,
): Finding {
  const app = backlog.queue === 'webhook-delivery' ? 'webhook-worker' : 'cleanup-worker';
  const check = `queue ${backlog.queue}`;
  const detail =
    backlog.due === 0 ? 'nothing is due' : `${backlog.due} due, the oldest for ${seconds(backlog.oldestDueMs ?? 0)}`;
  const processes = running.filter((process) => process.app === app);
  const [latest = null] = processes.map(({ silentMs }) => silentMs ?? 0).sort((a, b) => a - b);
  const working = processes.filter(({ silentMs }) => (silentMs ?? 0) <= SILENT_MS_MAX).length;
  // Workers of the previous release have no name in PostgreSQL.
  const inRedis = depths?.find(({ queue }) => queue === backlog.queue)?.workers ?? 0;
  if (latest === null && inRedis === 0) {
    return failure(check, `${detail}; no ${app} is connected`, `Start a ${app} and check its log.`);
  }
  if (latest !== null && working === 0) {
    const advice = `Check the log of the ${app} and restart it.`;
    return failure(check, `${detail}; no ${app} has read PostgreSQL for ${seconds(latest)}`, advice);
  }
  const workers = latest === null ? inRedis : working;
  if ((backlog.oldestDueMs ?? 0) > BACKLOG_AGE_MS_MAX) {
    return warning(check, detail, `Start another ${app} (${workers} run).`);
  }
  const proof = latest === null ? '' : `, which read PostgreSQL ${seconds(latest)} ago`;
  return ok(check, `${detail}; ${workers} ${workers === 1 ? 'worker' : 'workers'}${proof}`);
}

/** @param backlogs the work that waits; null if it could not be read. */
export function checkRedis(facts: RedisFacts, backlogs: readonly Backlog[] | null): Finding[] {
  const [major = 0, minor = 0] = facts.version.split('.').map(Number);
  return [
    major > 6 || (major === 6 && minor >= 2)
      ? ok('redis', `version ${facts.version}`)
      : failure('redis', `version ${facts.version}`, 'Upgrade Redis to 6.2 or later.'),
    checkRedisWrites(facts, backlogs),
    facts.maxmemoryPolicy === null || facts.maxmemoryPolicy === 'noeviction'
      ? ok('redis memory', facts.maxmemoryPolicy ?? 'maxmemory-policy unknown')
      : failure(
          'redis memory',
          `maxmemory-policy is ${facts.maxmemoryPolicy}`,
          'Set maxmemory-policy noeviction: others drop jobs when memory is short.',
        ),
    facts.appendOnly
      ? ok('redis persistence', 'append-only file is on')
      : warning(
          'redis persistence',
          'append-only file is off',
          'Turn appendonly on: after a restart every wake-up would wait for a sweep.',
        ),
  ];
}

const REDIS_ADVICE: Record<RedisTrouble, string> = {
  unreachable: 'Check that Redis runs and that REDIS_URL is right.',
  frozen: 'Redis accepts connections but does not answer: check its process, machine and disk.',
  loading: 'Redis is loading its data. Wait; if this does not end, replace it with an empty Redis.',
  'read-only': 'REDIS_URL leads to a Redis replica: promote it (REPLICAOF NO ONE), or point REDIS_URL to the master.',
  full: 'Raise maxmemory of Redis, or start the workers that take its jobs ("rtc queues").',
  'not-persisting': 'Redis cannot write to its disk: free disk space.',
  refused: 'Check the password and the permissions in REDIS_URL.',
};

/** The finding for a Redis that cannot be queried further. */
export function checkRedisTrouble(trouble: RedisTrouble, backlogs: readonly Backlog[] | null): Finding {
  return redisFailure('redis', trouble, `is ${trouble}`, backlogs);
}

function redisFailure(
  check: string,
  trouble: RedisTrouble,
  detail: string,
  backlogs: readonly Backlog[] | null,
): Finding {
  const limits = 'Each API process enforces rate limits on its own meanwhile.';
  return failure(check, detail, `${REDIS_ADVICE[trouble]} ${latenessOf(backlogs)} ${limits}`);
}

/** Says which work is late at this moment, and by how much. */
function latenessOf(backlogs: readonly Backlog[] | null): string {
  if (backlogs === null) return 'Without PostgreSQL it is unknown which work is late.';
  const late = backlogs.filter(({ due }) => due > 0);
  if (late.length === 0) return 'Measured now: no work is late, because workers scan PostgreSQL.';
  const parts = late.map(({ queue, due, oldestDueMs }) => `${queue} by ${seconds(oldestDueMs ?? 0)} (${due} due)`);
  return `Measured now: late are ${parts.join(', ')}. Workers scan PostgreSQL; see their queues above.`;
}

function checkRedisWrites(facts: RedisFacts, backlogs: readonly Backlog[] | null): Finding {
  const { trouble, role, usedBytes, maxBytes } = facts;
  const megabytes = (bytes: number): string => (bytes / 1_048_576).toFixed(1);
  const limit = maxBytes === 0 ? 'no limit' : `${megabytes(maxBytes)} MiB`;
  const state = `role ${role}, ${megabytes(usedBytes)} MiB used of ${limit}`;
  if (trouble !== null) return redisFailure('redis writes', trouble, `is ${trouble}: ${state}`, backlogs);
  return maxBytes > 0 && usedBytes > maxBytes * REDIS_MEMORY_SHARE_MAX
    ? warning('redis writes', state, REDIS_ADVICE.full)
    : ok('redis writes', state);
}
