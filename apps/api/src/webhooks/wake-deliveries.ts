import type { WakeableDelivery } from '@callplane/db';
import type { Deps } from '../deps.js';

/**
 * Wakes the workers for deliveries that have been committed. Nobody waits for it: what Redis does not take, a sweep
 * finds.
 */
export function wakeDeliveries(deps: Pick<Deps, 'producer' | 'logger'>, deliveries: readonly WakeableDelivery[]): void {
  if (deliveries.length === 0) return;
  void deps.producer.wakeAll(deliveries.map((row) => ({ queue: 'webhook-delivery', row }))).then((woken) => {
    if (!woken.ok) deps.logger.warn('deliveries not woken', { count: deliveries.length, error: woken.error });
  });
}
