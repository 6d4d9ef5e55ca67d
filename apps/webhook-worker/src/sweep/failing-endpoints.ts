import { disableFailingEndpoint, findFailingEndpoints } from '@callplane/db';
import type { Deps } from '../deps.js';
import { wake } from './sweep.js';

const DAY_MS = 24 * 60 * 60 * 1000;
const BATCH = 500;

/** Disables endpoints that have only failed for so many days, after a warning at half of the time. */
export class FailingEndpoints {
  readonly #deps: Deps;
  readonly #disableAfterDays: number;
  /** Since when they fail, of those that were warned of. */
  readonly #warned = new Map<string, number>();

  /** @param disableAfterDays 0 disables none and warns of none. */
  constructor(deps: Deps, disableAfterDays: number) {
    this.#deps = deps;
    this.#disableAfterDays = disableAfterDays;
  }

  async sweep(): Promise<void> {
    const days = this.#disableAfterDays;
    if (days === 0) return;
    const { database, logger, metrics, clock } = this.#deps;
    const forMs = days * DAY_MS;
    for (const { id, environmentId } of await findFailingEndpoints(database.prisma, forMs, BATCH)) {
      const reason = `It has only failed for ${days} ${days === 1 ? 'day' : 'days'}.`;
      const deliveries = await disableFailingEndpoint(database, id, forMs, reason, clock.now());
      if (deliveries === null) continue;
      logger.error('webhook endpoint disabled', { endpointId: id, environmentId, disableAfterDays: days });
      metrics.endpointDisabled();
      await wake(this.#deps, deliveries);
    }
    const failing = await findFailingEndpoints(database.prisma, forMs / 2, BATCH);
    metrics.setEndpointsFailing(failing.length);
    for (const { id, environmentId, failingSince } of failing) {
      if (this.#warned.get(id) === failingSince.getTime()) continue;
      this.#warned.set(id, failingSince.getTime());
      const fields = { endpointId: id, environmentId, failingSince, disableAfterDays: days };
      logger.warn('webhook endpoint fails and will be disabled', fields);
      metrics.disableWarning();
    }
  }
}
