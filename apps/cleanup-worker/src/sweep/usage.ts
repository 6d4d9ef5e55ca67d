import { rollUpUsage } from '@callplane/db';
import type { Deps } from '../deps.js';

/** Rolls up the usage of days that are complete. Almost every call finds none. */
export async function sweepUsage({ database, logger }: Deps): Promise<void> {
  const days = await rollUpUsage(database);
  if (days > 0) logger.info('usage rolled up', { days });
}
