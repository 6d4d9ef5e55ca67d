import type { Backlog } from '@callplane/db';
import type { RedisTarget } from '@callplane/queue/redis-target';
import { redisOf } from '../cli.js';
import type { CliConfig } from '../config.js';
import { warning, type Finding } from './findings.js';
import { checkCluster, checkRedis, checkRedisTrouble, checkSentinels } from './redis-findings.js';

/** @param backlogs the work that waits; null if it could not be read. */
export async function examineRedis(config: CliConfig, backlogs: Backlog[] | null): Promise<Finding[]> {
  const where = redisOf(config);
  if (where === undefined) return [warning('redis', 'not checked', 'Set REDIS_URL to check Redis.')];
  const { readClusterFacts, readRedisFacts, RedisUnusable } = await import('@callplane/queue');
  try {
    const facts = await readRedisFacts(where);
    return [...checkRedis(facts, backlogs), ...(await examineOthers(where, facts.replicas))];
  } catch (thrown) {
    // A cluster client does not say why none of its nodes answers. A connection to one node does.
    const error: unknown = await readClusterFacts(where).then(
      () => thrown,
      (reason: unknown) => reason,
    );
    const { cause } = error as Error;
    const trouble = error instanceof RedisUnusable ? error.reason : 'unreachable';
    const detail = cause instanceof Error && trouble !== 'frozen' ? cause.message : null;
    const finding = checkRedisTrouble(trouble, backlogs, detail);
    return [finding, ...(await examineOthers(where, null))];
  }
}

/** Checks the Sentinels or the cluster. They tell more if the keys cannot be reached. */
async function examineOthers(where: RedisTarget, replicas: number | null): Promise<Finding[]> {
  const { readClusterFacts, readSentinelFacts } = await import('@callplane/queue');
  const sentinels = await readSentinelFacts(where);
  if (sentinels !== null) return checkSentinels(sentinels, replicas);
  const cluster = await readClusterFacts(where).catch(() => null);
  return cluster === null ? [] : checkCluster(cluster, replicas);
}
