import type { Clock, Random } from '@callplane/core';
import type { Database } from '@callplane/db';
import type { JobProducer } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { OperationMetrics } from './metrics.js';

export interface Deps {
  database: Database;
  producer: JobProducer;
  logger: Logger;
  metrics: OperationMetrics;
  clock: Clock;
  random: Random;
  leaseMs: number;
}
