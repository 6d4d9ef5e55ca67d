import { countEndpointsFailing, disableFailingEndpoint, findFailingEndpoints, reportEndpoints } from '@callplane/db';
import { LRUCache } from 'lru-cache';
import type { Deps } from '../deps.js';

const DAY_MS = 24 * 60 * 60 * 1000;
const BATCH = 500;
/** Endpoints with a logged warning that a worker remembers. A forgotten one is warned of again. */
const WARNED_MAX = 10_000;

/**
 * Reports endpoints that only fail. Disables endpoints whose attempts have all failed for `disableAfterDays` days, and
 * warns after half of that time.
 */
export class FailingEndpoints {
  readonly #deps: Deps;
  readonly #disableAfterDays: number;
  /** Start of the failure in Unix milliseconds, by the id of each endpoint with a logged warning. */
  readonly #warned = new LRUCache<string, number>({ max: WARNED_MAX });

  /** @param disableAfterDays with 0, no endpoint is disabled, or warned that it will be. */
  constructor(deps: Deps, disableAfterDays: number) {
    this.#deps = deps;
    this.#disableAfterDays = disableAfterDays;
  }

  /** Reports and disables. One worker does. */
  async sweep(): Promise<void> {
    await this.#report();
    await this.#disable();
  }

  /** Sets the metric. Every worker does. */
  async count(): Promise<void> {
    const { database, metrics } = this.#deps;
    metrics.setEndpointsFailing(await countEndpointsFailing(database.sql));
  }

  /** Logs the beginning and the end of each failure, and sends an event of it. */
  async #report(): Promise<void> {
    const { database, logger, producer, clock } = this.#deps;
    for (;;) {
      const { failing, recovered, deliveries } = await reportEndpoints(database, clock.now());
      for (const { id, environmentId, failingSince } of failing) {
        logger.warn('webhook endpoint fails', { endpointId: id, environmentId, failingSince });
      }
      for (const { id, environmentId, failingSince } of recovered) {
        logger.info('webhook endpoint works again', { endpointId: id, environmentId, failingSince });
      }
      await producer.wakeDeliveries(deliveries);
      if (failing.length + recovered.length === 0) return;
    }
  }

  async #disable(): Promise<void> {
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
    for (const { id, environmentId, failingSince } of failing) {
      if (this.#warned.get(id) === failingSince.getTime()) continue;
      this.#warned.set(id, failingSince.getTime());
      const fields = { endpointId: id, environmentId, failingSince, disableAfterDays: days };
      logger.warn('webhook endpoint fails and will be disabled', fields);
      metrics.disableWarning();
    }
  }
}
