import type { Clock, Random } from '@callplane/core';
import type { Database } from '@callplane/db';
import type { MediaNodes } from '@callplane/media';
import type { JobProducer } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';

export interface Deps {
  database: Database;
  producer: JobProducer;
  /** None of them while no media server is configured. */
  media: MediaNodes;
  logger: Logger;
  clock: Clock;
  random: Random;
  leaseMs: number;
  /** How long a session outlives its connection, in milliseconds. */
  graceMs: number;
}
