import {
  countMediaNodes,
  isSynchronous,
  readLiveCounts,
  readOldestDue,
  readReplication,
  type Replication,
} from '@callplane/db';
import type { Metrics } from '@callplane/runtime';
import type { Deps } from '../deps.js';

/**
 * Gauges of the whole deployment that only the database knows. A pass reads them periodically, and every scrape shows
 * the last values. All workers report the same values, so a dashboard has to take the maximum instead of the sum.
 */
export class Observer {
  readonly #deps: Pick<Deps, 'database' | 'media' | 'relays'>;
  #values: Record<'oldestDue' | 'live' | 'mediaNodes', Record<string, number>> | null = null;
  #replication: Replication | null = null;

  constructor(deps: Pick<Deps, 'database' | 'media' | 'relays'>, metrics: Metrics) {
    this.#deps = deps;
    metrics.gauges(
      { name: 'callplane_oldest_due_seconds', help: 'Age of the oldest due row, in seconds.', label: 'queue' },
      () => this.#values?.oldestDue ?? {},
    );
    metrics.gauges(
      { name: 'callplane_live', help: 'Rooms with live participants, and live participants.', label: 'what' },
      () => this.#values?.live ?? {},
    );
    this.#addReplication(metrics);
    metrics.gauges(
      {
        name: 'callplane_media_nodes',
        help: 'Media servers by the state that the workers recorded; draining ones are up.',
        label: 'state',
      },
      () => this.#values?.mediaNodes ?? {},
    );
    metrics.gauges(
      {
        name: 'callplane_media_node_up',
        help: '1 if this process is connected to the media server, else 0.',
        label: 'node',
      },
      () => Object.fromEntries(this.#deps.media.all().map(({ id, state }) => [id, state === 'up' ? 1 : 0])),
    );
    metrics.gauges(
      {
        name: 'callplane_turn_server_up',
        help: '1 if this process can close relays of the TURN server, else 0.',
        label: 'server',
      },
      () =>
        Object.fromEntries([...this.#deps.relays.states()].map(([server, state]) => [server, state === 'up' ? 1 : 0])),
    );
  }

  /**
   * Reads the gauges. If the database fails, they show nothing instead of stale values. While a query is running, they
   * keep the last values: a scrape without a value would restart the waiting time of an alert, and a slow database
   * makes such scrapes likely.
   */
  async pass(): Promise<void> {
    const { sql } = this.#deps.database;
    try {
      this.#replication = await readReplication(sql);
      const oldestDue = await readOldestDue(sql);
      const { rooms, participants } = await readLiveCounts(sql);
      const mediaNodes = await countMediaNodes(sql);
      this.#values = { oldestDue, live: { rooms, participants }, mediaNodes };
    } catch (error) {
      this.#values = null;
      this.#replication = null;
      throw error;
    }
  }

  #addReplication(metrics: Metrics): void {
    metrics.gauges(
      {
        name: 'callplane_postgres_standbys',
        help: 'Standbys that stream from PostgreSQL. `wanted` is 1 if commits need a synchronous one.',
        label: 'kind',
      },
      () => {
        if (this.#replication === null) return {};
        const { standbys, synchronousNames } = this.#replication;
        const streaming = standbys.filter(({ state }) => state === 'streaming');
        const synchronous = streaming.filter(isSynchronous).length;
        return { synchronous, other: streaming.length - synchronous, wanted: synchronousNames === '' ? 0 : 1 };
      },
    );
    metrics.gauges(
      {
        name: 'callplane_postgres_replication_lag_bytes',
        help: 'Log that a standby of PostgreSQL has not replayed yet.',
        label: 'standby',
      },
      () =>
        Object.fromEntries(
          (this.#replication?.standbys ?? []).flatMap(({ name, lagBytes }) =>
            name === null || lagBytes === null ? [] : [[name, lagBytes]],
          ),
        ),
    );
    metrics.gauges(
      {
        name: 'callplane_postgres_commits_waiting',
        help: 'Commits of Callplane that wait for a synchronous standby.',
        label: 'for',
      },
      () => (this.#replication === null ? {} : { standby: this.#replication.waitingCommits }),
    );
  }
}
