import { generateKeyPairSync } from 'node:crypto';
import { parseMasterKeys } from '@callplane/core';
import { Database, sweepLeases } from '@callplane/db';
import { Elections, Repeating, type Logger, type Metrics } from '../../../packages/runtime/src/index.js';
import type { SimMedia } from '../ports/media.js';
import type { SimRedis } from '../ports/redis.js';
import type { World } from '../world.js';

export const MASTER_KEYS = parseMasterKeys([`k1:${Buffer.alloc(32, 7).toString('base64')}`]);
const PAIR = generateKeyPairSync('ec', { namedCurve: 'P-256' });
/** Tokens have random signatures of one length. */
export const SIGNER = { kid: 'simulated', privateKey: PAIR.privateKey };
export const PUBLIC_KEY = PAIR.publicKey;
export const TOKENS = { issuer: 'callplane', audience: 'callplane' };

/** The parts of a simulated process. */
export interface Parts {
  readonly world: World;
  readonly redis: SimRedis;
  readonly media: SimMedia;
  readonly databaseUrl: string;
  readonly logger: Logger;
  readonly name: string;
}

const count = { inc: () => undefined, observe: () => undefined, set: () => undefined, labels: () => count };

export const noMetrics: Metrics = {
  counter: () => count,
  histogram: () => count,
  gauge: () => undefined,
  gauges: () => undefined,
  totals: () => undefined,
} as unknown as Metrics;

type Work = (signal: AbortSignal) => Promise<void>;

/** The periodic tasks of a process, as `AppProcess` of the runtime runs them. */
export function periodicTasks(app: string, name: string, database: Database, logger: Logger) {
  const elections = new Elections(sweepLeases(database.sql, name), { logger, metrics: noMetrics });
  const repeat = (task: string, intervalMs: number, work: Work): void => {
    new Repeating(intervalMs, work, (error) => logger.error('task failed', { task, error }));
  };
  return {
    repeat,
    repeatElected(task: string, intervalMs: number, work: Work): void {
      const elected = elections.add({ name: `${app} ${task}`, intervalMs, work });
      repeat(task, intervalMs, (signal) => elected.tick(signal));
    },
  };
}

export function openDatabase(url: string, more: { indexesOnly?: boolean; poolMax?: number } = {}): Database {
  return new Database({ url, poolMax: 10, ...more });
}
