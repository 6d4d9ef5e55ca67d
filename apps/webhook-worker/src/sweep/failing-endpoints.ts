import { disableFailingEndpoint, findFailingEndpoints } from '@callplane/db';
import type { Deps } from '../deps.js';

const DAY_MS = 24 * 60 * 60 * 1000;
const BATCH = 500;

/** Disables endpoints whose attempts have all failed for `disableAfterDays` days, and warns after half of that time. */
export class FailingEndpoints {
  readonly #deps: Deps;
  readonly #disableAfterDays: number;
  /** Start of the failure in Unix milliseconds, by the id of each endpoint with a logged warning. */
  readonly #warned = new Map<string, number>();

  /** @param disableAfterDays with 0, no endpoint is disabled or warned about. */
  constructor(deps: Deps, disableAfterDays: number) {
    this.#deps = deps;
    this.#disableAfterDays = disableAfterDays;
  }

  async sweep(): Promise<void> {
    const days = this.#disableAfterDays;
    if (days === 0) return;
    const { database, logger, metrics, clock } = this.#deps;
    const forMs = days * DAY_MS;
    for (const { id, environmentId } of await findFailingEndpoints(database.sql, forMs, BATCH)) {
      const reason = `Every attempt has failed for ${days} ${days === 1 ? 'day' : 'days'}.`;
      const deliveries = await disableFailingEndpoint(database, id, forMs, reason, clock.now());
      if (deliveries === null) continue;
      logger.error('webhook endpoint disabled', { endpointId: id, environmentId, disableAfterDays: days });
      metrics.endpointDisabled();
      await this.#deps.producer.wakeDeliveries(deliveries);
    }
    const failing = await findFailingEndpoints(database.sql, forMs / 2, BATCH);
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
