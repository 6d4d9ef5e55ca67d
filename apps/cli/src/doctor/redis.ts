import type { Backlog, RunningApp } from '@callplane/db';
import type { RedisExamination, RedisTrouble, SentinelFacts } from '@callplane/queue';
import { redisOf } from '../cli.js';
import type { CliConfig } from '../config.js';
import { failure, ok, seconds, warning, type Finding } from './finding.js';

const MEMORY_SHARE_MAX = 0.8;
/** Beyond this part of the machine's memory, a rewrite of the append-only file may run out of memory: it forks. */
const MAXMEMORY_SHARE_MAX = 0.75;
const SENTINELS_MIN = 3;

/**
 * @param backlogs the work that waits; null if it could not be read.
 * @param running the processes that are connected to PostgreSQL; null if they could not be read.
 */
export async function redisFindings(
  config: CliConfig,
  backlogs: Backlog[] | null,
  running: readonly RunningApp[] | null,
): Promise<Finding[]> {
  const where = redisOf(config);
  if (where === undefined) return [warning('redis', 'not checked', 'Set REDIS_URL to check Redis.')];
  const { examineRedis, readSentinelFacts, RedisUnusable, SHARED_CHANNEL } = await import('@callplane/queue');
  const findings: Finding[] = [];
  let replicas: number | null = null;
  try {
    const facts = await examineRedis(where, SHARED_CHANNEL);
    ({ replicas } = facts);
    findings.push(...checkRedis(facts, backlogs), ...checkListeners(facts.listeners, running));
  } catch (error) {
    const { cause } = error as Error;
    const trouble = error instanceof RedisUnusable ? error.reason : 'unreachable';
    const detail = cause instanceof Error && trouble !== 'frozen' ? cause.message : null;
    findings.push(checkRedisTrouble(trouble, backlogs, detail));
  }
  // The Sentinels tell more if the keys cannot be reached.
  const sentinels = await readSentinelFacts(where);
  return sentinels === null ? findings : [...findings, ...checkSentinels(sentinels, replicas)];
}

/** @param backlogs the work that waits; null if it could not be read. */
export function checkRedis(facts: RedisExamination, backlogs: readonly Backlog[] | null): Finding[] {
  const [major = 0, minor = 0] = facts.version.split('.').map(Number);
  return [
    major > 6 || (major === 6 && minor >= 2)
      ? ok('redis', `version ${facts.version}`)
      : failure('redis', `version ${facts.version}`, 'Upgrade Redis to 6.2 or later.'),
    checkRedisWrites(facts, backlogs),
    checkMemory(facts),
    checkPersistence(facts),
  ];
}

/** @param listeners processes that subscribe to notices, as Redis counts them; null if it does not tell. */
export function checkListeners(listeners: number | null, running: readonly RunningApp[] | null): Finding[] {
  if (listeners === null || running === null) return [];
  const check = 'redis subscriptions';
  const expected = running.filter(({ app }) => app === 'api' || app === 'signaling').length;
  const detail = `${Math.min(listeners, expected)} of ${expected} API and gateway processes receive notices`;
  if (listeners >= expected) return [ok(check, detail)];
  const advice =
    'Give the users of these apps the channels of infra/redis/users.acl; "ACL LOG" in redis-cli names the refused commands. ' +
    'Meanwhile they read rows every few seconds.';
  return [failure(check, detail, advice)];
}

function checkMemory({ maxmemoryPolicy, usedBytes, maxBytes, systemBytes }: RedisExamination): Finding {
  const check = 'redis memory';
  if (maxmemoryPolicy !== null && maxmemoryPolicy !== 'noeviction') {
    return failure(
      check,
      `maxmemory-policy is ${maxmemoryPolicy}`,
      'Set maxmemory-policy noeviction: others drop jobs when memory is short.',
    );
  }
  const limitBytes = maxBytes === 0 ? systemBytes : maxBytes;
  const limit = maxBytes === 0 ? 'the machine' : 'maxmemory';
  const state =
    `${maxmemoryPolicy ?? 'maxmemory-policy unknown'}, ${megabytes(usedBytes)} MiB used` +
    (limitBytes === 0 ? ', no limit known' : ` of ${megabytes(limitBytes)} MiB (${limit})`);
  if (limitBytes > 0 && usedBytes > limitBytes * MEMORY_SHARE_MAX) return warning(check, state, REDIS_ADVICE.full);
  if (systemBytes > 0 && maxBytes > systemBytes * MAXMEMORY_SHARE_MAX) {
    const advice = 'Lower maxmemory to three quarters of the machine: a rewrite of the append-only file forks Redis.';
    return warning(check, `${state}, which has ${megabytes(systemBytes)} MiB in all`, advice);
  }
  return ok(check, state);
}

function checkPersistence({ appendOnly, isPersisting }: RedisExamination): Finding {
  const check = 'redis persistence';
  if (!isPersisting) {
    return failure(check, 'the last write to disk failed', 'Check the log and the disk of Redis.');
  }
  return appendOnly
    ? ok(check, 'append-only file is on')
    : warning(
        check,
        'append-only file is off',
        'Turn appendonly on: after a restart every wake-up would wait for a sweep.',
      );
}

/** @param replicas replicas of the present master; null if it cannot be reached. */
export function checkSentinels(facts: SentinelFacts, replicas: number | null): Finding[] {
  const check = 'redis sentinels';
  const { named, answering, failures, known, masters, quorumProblem } = facts;
  const state = `${answering} of ${named} answer${failures.length === 0 ? '' : ` (${failures.join('; ')})`}`;
  if (answering === 0) {
    return [failure(check, state, 'Check the addresses in REDIS_URL, REDIS_SENTINEL_PASSWORD and TLS.')];
  }
  const master = `they know ${known} and name ${masters.join(' and ')}`;
  const detail = `${state}, ${master}`;
  const finding =
    quorumProblem !== null
      ? failure(
          check,
          `${detail}: ${quorumProblem}`,
          'Start the missing Sentinels: no replica is promoted without most of them.',
        )
      : masters.length > 1
        ? warning(
            check,
            detail,
            'Repeat the check: they disagree for seconds after a promotion. Otherwise compare their logs.',
          )
        : answering < named
          ? warning(check, detail, 'Start the missing ones, or correct REDIS_URL.')
          : known < SENTINELS_MIN
            ? warning(check, detail, 'Run three Sentinels on three machines: two cannot agree after the loss of one.')
            : ok(check, detail);
  return [finding, ...checkReplicas(replicas)];
}

function checkReplicas(replicas: number | null): Finding[] {
  if (replicas === null) return [];
  const detail = `${replicas} in step`;
  if (replicas > 0) return [ok('redis replicas', detail)];
  return [warning('redis replicas', detail, 'Start a replica: none could take over from the master.')];
}

const megabytes = (bytes: number): string => (bytes / 1_048_576).toFixed(1);

const REDIS_ADVICE: Record<RedisTrouble, string> = {
  unreachable: 'Check that Redis runs and that REDIS_URL is right.',
  frozen: 'Redis accepts connections but does not answer: check its process, machine and disk.',
  loading: 'Redis is loading its data. Wait; if this does not end, replace it with an empty Redis.',
  'read-only': 'REDIS_URL leads to a Redis replica: promote it (REPLICAOF NO ONE), or point REDIS_URL to the master.',
  full: 'Raise maxmemory of Redis, or start the workers that take its jobs ("rtc queues").',
  'not-persisting': 'Redis cannot write to its disk: free disk space.',
  refused:
    'Check user and password (REDIS_URL, REDIS_PASSWORD, REDIS_SENTINEL_PASSWORD), and give the user the rights of infra/redis/users.acl ("ACL LOG" in redis-cli names the refused commands).',
  cluster:
    'Redis runs in cluster mode, which spreads the keys of a queue over several servers: point REDIS_URL to one without it.',
  untrusted: 'Check REDIS_CA_FILE, the names in the certificate of Redis and its dates, and that this port speaks TLS.',
};

/** The finding for a Redis that cannot be queried further. */
export function checkRedisTrouble(
  trouble: RedisTrouble,
  backlogs: readonly Backlog[] | null,
  cause: string | null = null,
): Finding {
  return redisFailure('redis', trouble, `is ${trouble}${cause === null ? '' : ` (${cause})`}`, backlogs);
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

function checkRedisWrites({ trouble, role }: RedisExamination, backlogs: readonly Backlog[] | null): Finding {
  const state = `role ${role}`;
  return trouble === null
    ? ok('redis writes', state)
    : redisFailure('redis writes', trouble, `is ${trouble}: ${state}`, backlogs);
}
