import type { WakeableDelivery } from '@callplane/db';
import type { Deps } from '../deps.js';

/** After the commit: best effort, and no answer waits for it. A sweep of the webhook workers finds what is not woken. */
export function wakeDeliveries(deps: Pick<Deps, 'producer' | 'logger'>, deliveries: readonly WakeableDelivery[]): void {
  if (deliveries.length === 0) return;
  void deps.producer.wakeDeliveries(deliveries).then((woken) => {
    if (!woken.ok) deps.logger.warn('deliveries not woken', { count: deliveries.length, error: woken.error });
  });
}
