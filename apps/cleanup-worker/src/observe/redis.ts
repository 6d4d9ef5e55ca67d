import { observeRedis, type RedisClient, type RedisFacts } from '@callplane/queue';
import type { Metrics } from '@callplane/runtime';

/** Gauges of the Redis that holds the keys. They are absent while it does not answer. */
export class RedisObserver {
  readonly #redis: RedisClient;
  #facts: RedisFacts | null = null;
  /** Passes in a row that got no answer. A single one means a busy machine, and would restart the wait of an alert. */
  #failures = 0;

  /** @param redis a `command` connection. */
  constructor(redis: RedisClient, metrics: Metrics) {
    this.#redis = redis;
    const add = (name: string, help: string, read: (facts: RedisFacts) => number): void =>
      metrics.gauge({ name: `callplane_redis_${name}`, help }, () => (this.#facts === null ? null : read(this.#facts)));
    add('master', '1 if the Redis that REDIS_URL leads to is a master, else 0.', ({ role }) =>
      role === 'master' ? 1 : 0,
    );
    add('replicas', 'Replicas of Redis that are connected and in step.', ({ replicas }) => replicas);
    add('memory_used_bytes', 'Memory that Redis uses, in bytes.', ({ usedBytes }) => usedBytes);
    add('memory_used_ratio', 'Part of maxmemory that Redis uses; 0 without maxmemory.', ({ usedBytes, maxBytes }) =>
      maxBytes === 0 ? 0 : usedBytes / maxBytes,
    );
    add('persistence_ok', '1 if Redis has an append-only file and writes it without errors, else 0.', (facts) =>
      facts.appendOnly && facts.isPersisting ? 1 : 0,
    );
  }

  /** Reads the facts. Never throws: `callplane_redis_unusable` says why Redis does not answer. */
  async pass(): Promise<void> {
    try {
      this.#facts = await observeRedis(this.#redis);
      this.#failures = 0;
    } catch {
      this.#failures += 1;
      if (this.#failures > 1) this.#facts = null;
    }
  }
}
