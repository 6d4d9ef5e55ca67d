import { readLiveCounts, readOldestDue } from '@callplane/db';
import type { Metrics } from '@callplane/runtime';
import type { Deps } from '../deps.js';

/**
 * What only the database knows of the whole deployment: read from time to time, shown at each scrape. Every worker shows
 * the same, so a dashboard takes the largest.
 */
export class Observer {
  readonly #deps: Pick<Deps, 'database' | 'media'>;
  #values: { oldestDue: Record<string, number>; live: Record<string, number> } | null = null;

  constructor(deps: Pick<Deps, 'database' | 'media'>, metrics: Metrics) {
    this.#deps = deps;
    metrics.gauges(
      { name: 'callplane_oldest_due_seconds', help: 'For how long the oldest due row has waited.', label: 'queue' },
      () => this.#values?.oldestDue ?? {},
    );
    metrics.gauges(
      { name: 'callplane_live', help: 'Rooms with somebody in them, and live participants.', label: 'what' },
      () => this.#values?.live ?? {},
    );
    metrics.gauges(
      { name: 'callplane_media_node_up', help: 'Whether this process reaches a media server.', label: 'node' },
      () => Object.fromEntries(this.#deps.media.all().map(({ id, state }) => [id, state === 'up' ? 1 : 0])),
    );
  }

  /**
   * While the database cannot be asked nothing is shown, rather than what was true once. While it is being asked the
   * last values are: a scrape in between that saw none would begin the time of an alert anew, and a slow database is
   * asked for long.
   */
  async pass(): Promise<void> {
    const { prisma } = this.#deps.database;
    try {
      const oldestDue = await readOldestDue(prisma);
      const { rooms, participants } = await readLiveCounts(prisma);
      this.#values = { oldestDue, live: { rooms, participants } };
    } catch (error) {
      this.#values = null;
      throw error;
    }
  }
}
