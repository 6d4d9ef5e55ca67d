import { findSchedulableEndpoints, isDatabaseUnavailable } from '@callplane/db';
import type { Deps } from '../deps.js';
import type { Workers } from './workers.js';

/** Endpoint and delivery ids per statement. */
const BATCH = 500;
/** Maximum number of doorbells that wait for a read. Beyond it, the scan finds the endpoints. */
const WAITING_MAX = 10_000;
const ENDPOINT_ID = /^whep_/;

/** Handles doorbells. It wakes endpoints that a worker knows, and first reads the rows of all others. */
export class Doorbells {
  readonly #deps: Pick<Deps, 'claimsDatabase' | 'logger'>;
  readonly #workers: Workers;
  readonly #waiting = new Set<string>();
  #reading: Promise<void> | undefined;

  constructor(deps: Pick<Deps, 'claimsDatabase' | 'logger'>, workers: Workers) {
    this.#deps = deps;
    this.#workers = workers;
  }

  /**
   * @param jobId the endpoint's id. An API of the previous release sends another text: then the delivery stands for its
   *   endpoint.
   */
  received(jobId: string, deliveryId: string): void {
    this.ring([ENDPOINT_ID.test(jobId) ? jobId : deliveryId]);
  }

  /** @param ids endpoint ids, or delivery ids that stand for their endpoints. */
  ring(ids: readonly string[]): void {
    for (const id of ids) {
      if (this.#workers.knows(id)) this.#workers.wake([id]);
      else if (this.#waiting.size < WAITING_MAX) this.#waiting.add(id);
    }
    if (this.#waiting.size > 0) this.#reading ??= this.#readAll().finally(() => (this.#reading = undefined));
  }

  async close(): Promise<void> {
    this.#waiting.clear();
    await this.#reading;
  }

  async #readAll(): Promise<void> {
    while (this.#waiting.size > 0) {
      const ids = [...this.#waiting].slice(0, BATCH);
      for (const id of ids) this.#waiting.delete(id);
      try {
        const endpointIds = ids.filter((id) => ENDPOINT_ID.test(id));
        const deliveryIds = ids.filter((id) => !ENDPOINT_ID.test(id));
        this.#workers.wakeRead(
          await findSchedulableEndpoints(this.#deps.claimsDatabase.sql, { endpointIds, deliveryIds }),
        );
      } catch (error) {
        this.#waiting.clear();
        const message = isDatabaseUnavailable(error) ? 'doorbells wait for PostgreSQL' : 'doorbell failed';
        this.#deps.logger.error(message, { error });
      }
    }
  }
}
