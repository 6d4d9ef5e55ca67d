import type { Clock, Random } from '@callplane/core';
import type { Database } from '@callplane/db';
import type { MediaNodes } from '@callplane/media';
import type { JobProducer } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { OperationMetrics } from './metrics.js';
import type { OutageWatch } from './reconcile/outage-watch.js';
import type { Relays } from './relays/relays.js';

export interface Deps {
  database: Database;
  producer: JobProducer;
  /** Empty if no media server is configured or registered. */
  media: MediaNodes;
  relays: Relays;
  logger: Logger;
  metrics: OperationMetrics;
  clock: Clock;
  random: Random;
  leaseMs: number;
  /** How long a session outlives its connection, in milliseconds. */
  graceMs: number;
  /** Without it, each silence is judged. */
  outages?: Pick<OutageWatch, 'isSettled'>;
}
