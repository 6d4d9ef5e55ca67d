import { completeErasures, eraseEvents } from '@callplane/db';
import type { Deps } from '../deps.js';

/** Erases personal data from events whose deliveries were still running when the erasure was requested. */
export async function sweepErasures({ database, clock, metrics, logger }: Deps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const events = await eraseEvents(database, null, clock.now());
    if (events === 0) break;
    metrics.purged('erased_events', events);
    logger.info('events erased', { events });
  }
  const completed = await completeErasures(database);
  if (completed > 0) logger.info('erasures completed', { participants: completed });
}
