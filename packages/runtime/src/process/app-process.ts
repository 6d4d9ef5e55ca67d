import { hostname } from 'node:os';
import { bucketTimes, CLOCK_DIFFERENCE_MS_MAX, TokenBucket, type Clock } from '@callplane/core';
import type { Static, TObject } from 'typebox';
import type { metricsSettings, shutdownSettings } from '../config/common-settings.js';
import { databaseConnection, type databaseSettings } from '../config/database-connection.js';
import { orExitWithProblems, parseEnvironment } from '../config/environment.js';
import { createHealth, startHealthServer, type Health, type HealthCheck } from '../health/health.js';
import { Lifecycle } from '../lifecycle/lifecycle.js';
import { createLogger, redisEvents, type Logger, type LogSettings } from '../logging/logger.js';
import { createMetrics, startMetricsServer, type Metrics } from '../metrics/metrics.js';
import type { Elections } from '../repeating/elected.js';
import { Repeating, type Work } from '../repeating/repeating.js';
import { Telemetry, type TelemetryConfig } from '../telemetry/telemetry.js';

/** The real time. Only `main.ts` uses it, so that tests can control the clock. */
export const systemClock: Clock = { now: () => new Date() };

/** Log lines about payloads of Redis that are not valid: somebody may send any number of them. */
const INVALID_LINES = { perSecond: 1, burst: 10 };
/**
 * Time between two comparisons with PostgreSQL's clock, in milliseconds. The connection that carries the result would
 * close after 10 s without a statement.
 */
const CLOCK_INTERVAL_MS = 5000;

/** The settings that every app has. */
export type ProcessConfig = LogSettings &
  TelemetryConfig &
  Static<TObject<typeof databaseSettings & typeof metricsSettings & typeof shutdownSettings>> & {
    INSTANCE_ID?: string;
    /** Only apps behind a load balancer have it. */
    DRAIN_DELAY_MS?: number;
  };

interface Closable {
  close(): Promise<unknown>;
}

interface OwnedPool extends Closable {
  connections(): { used: number; idle: number; waiting: number };
}

interface MainPool extends OwnedPool {
  checkReady(): Promise<unknown>;
  /** Returns how far this clock is ahead of PostgreSQL's, in milliseconds. */
  compareClock(clock: Clock): Promise<number>;
}

interface FurtherPool extends OwnedPool {
  /** Rejects while PostgreSQL refuses writes because its disk is full. */
  checkDisk(): Promise<void>;
}

/**
 * The frame of every `main.ts`: settings, logger, metrics, the drain on a signal, and exit codes. Resources close in
 * the reverse order of their opening.
 */
export class AppProcess<Config extends ProcessConfig> {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly lifecycle: Lifecycle;
  readonly #checks: Record<string, HealthCheck> = {};
  readonly #telemetry: Telemetry;
  readonly #subscribers: { refusal: string | null }[] = [];
  readonly #invalidLines = new TokenBucket(bucketTimes(INVALID_LINES));
  readonly #repeats: { inc(): void };
  readonly #invalid: { inc(labels: { connection: string }, by?: number): void };

  /**
   * Reads the settings and handles signals from now on. Exits with code 1 if a setting is missing or wrong.
   * @param fields fields of every log line of this process.
   */
  static start<T extends TObject>(
    app: string,
    schema: Static<T> extends ProcessConfig ? T : never,
    fields: Record<string, unknown> = {},
  ): AppProcess<Static<T> & ProcessConfig> {
    const config = orExitWithProblems(() => parseEnvironment(schema as T, process.env)) as Static<T> & ProcessConfig;
    const logger = createLogger(config, app).child(fields);
    const started = new AppProcess(app, config, logger);
    started.lifecycle.handleSignals();
    return started;
  }

  constructor(
    private readonly app: string,
    config: Config,
    logger: Logger,
  ) {
    this.config = config;
    this.logger = logger;
    this.metrics = createMetrics({ app });
    this.lifecycle = new Lifecycle(logger, {
      delayMs: config.DRAIN_DELAY_MS ?? 0,
      deadlineMs: config.SHUTDOWN_DEADLINE_MS,
    });
    this.#repeats = this.metrics.counter({
      name: 'callplane_database_repeats_total',
      help: 'Statements and transactions that were repeated, because PostgreSQL ended them in favour of others.',
    });
    this.#invalid = this.metrics.counter({
      name: 'callplane_redis_payloads_invalid_total',
      help: 'Messages and jobs from Redis that were dropped, because no process of this release writes them.',
      labels: ['connection'],
    });
    // Owned first, so that it closes last and exports the spans of the drain.
    this.#telemetry = this.own('telemetry', new Telemetry(app, config, { logger, metrics: this.metrics }));
  }

  /**
   * The process owns the resource: it closes it when it drains. Resources close in the reverse order of these calls.
   */
  own<T extends Closable>(name: string, resource: T): T {
    this.lifecycle.onClose(name, () => resource.close());
    return resource;
  }

  /** Names this process for operators, also when it has ended. */
  get processName(): string {
    return `${this.app} ${process.pid}@${hostname()}`;
  }

  /** Settings for `new Database(…)`. Exits with code 1 if they are wrong. */
  get databaseSettings() {
    return {
      ...orExitWithProblems(() => databaseConnection(this.config)),
      poolMax: this.config.DATABASE_POOL_MAX,
      // `rtc doctor` finds the running processes by this name, also when Redis is away.
      applicationName: `callplane ${this.processName}`,
      onConnectionError: (error: Error): void => this.logger.warn('database connection lost', { error }),
      onRepeat: (): void => this.#repeats.inc(),
    };
  }

  /**
   * The main pool of the process, with its metrics and its health check.
   * @param others further pools, whose connections the metrics count as well. They may be the only ones that write.
   */
  ownDatabase<T extends MainPool>(database: T, others: readonly FurtherPool[] = []): T {
    const all: OwnedPool[] = [database, ...others];
    const help = 'Connections of the database pool, by state. `waiting` counts callers without a connection.';
    this.metrics.gauges({ name: 'callplane_database_connections', help, label: 'state' }, () => {
      const counts = all.map((each) => each.connections());
      const sum = (state: 'used' | 'idle' | 'waiting') => counts.reduce((total, count) => total + count[state], 0);
      return { used: sum('used'), idle: sum('idle'), waiting: sum('waiting') };
    });
    this.#checks['postgres'] = {
      ping: async () => {
        await database.checkReady();
        await Promise.all(others.map((other) => other.checkDisk()));
      },
    };
    for (const [index, other] of others.entries()) this.own(`database ${index + 2}`, other);
    this.own('database', database);
    let wasWrong = false;
    const compare = async (): Promise<void> => {
      const aheadMs = await database.compareClock(systemClock);
      const isWrong = Math.abs(aheadMs) > CLOCK_DIFFERENCE_MS_MAX;
      if (isWrong && !wasWrong) this.logger.warn("clock differs from PostgreSQL's", { aheadMs });
      if (!isWrong && wasWrong) this.logger.info("clock agrees with PostgreSQL's again", { aheadMs });
      wasWrong = isWrong;
    };
    // Its health check reports that PostgreSQL is unavailable.
    this.own('clock', new Repeating(CLOCK_INTERVAL_MS, compare, () => undefined));
    return database;
  }

  /** Events of a connection to Redis: logs its losses and refusals, and logs and counts payloads that are not valid. */
  redisEvents(connection: string) {
    const { logger } = this;
    this.#invalid.inc({ connection }, 0);
    return {
      ...redisEvents(logger, connection),
      onRefused: (error: Error): void => logger.error('redis subscription refused', { connection, error }),
      onInvalid: (error: Error): void => {
        this.#invalid.inc({ connection });
        if (this.#invalidLines.take(performance.now())) logger.error('redis payload invalid', { connection, error });
      },
    };
  }

  /** Receives notices over Redis. Metric and health check of Redis show if it refuses the subscriptions. */
  ownSubscriber<T extends Closable & { refusal: string | null }>(name: string, subscriber: T): T {
    this.#subscribers.push(subscriber);
    return this.own(name, subscriber);
  }

  /**
   * Events for `new JobProducer(…)`: logs losses of the connection, and logs and counts wake-ups that were not sent.
   */
  producerEvents(queues: readonly string[]) {
    const notSent = this.metrics.counter({
      name: 'callplane_wake_ups_not_sent_total',
      help: 'Wake-ups that were not sent to Redis. Scans of the workers find their rows.',
      labels: ['queue'],
      known: queues.map((queue) => ({ queue })),
    });
    return {
      ...redisEvents(this.logger, 'producer'),
      onNotSent: ({ queue, count, error }: { queue: string; count: number; error: Error }): void => {
        notSent.inc({ queue }, count);
        this.logger.warn('wake-ups not sent', { queue, count, error });
      },
    };
  }

  /** The producer of the process, with the metrics and the health check of Redis. */
  ownProducer<T extends Closable & { health: { trouble: string | null; check(): Promise<void> } }>(
    producer: T,
    troubles: readonly string[],
  ): T {
    const help = 'Reason why this process cannot use Redis: 1 for the current reason, 0 for all others.';
    const refusal = (): string | null => this.#subscribers.find((each) => each.refusal !== null)?.refusal ?? null;
    this.metrics.gauges({ name: 'callplane_redis_unusable', help, label: 'reason' }, () => {
      const trouble = producer.health.trouble ?? refusal();
      return Object.fromEntries(troubles.map((each) => [each, each === trouble ? 1 : 0]));
    });
    // No app needs Redis to be ready, see docs/decisions/0001.
    const ping = async (): Promise<void> => {
      await producer.health.check();
      const reason = refusal();
      if (reason !== null) throw Object.assign(new Error(`Redis has ${reason} a subscription`), { reason });
    };
    this.#checks['redis'] = { ping, optional: true };
    return this.own('producer', producer);
  }

  /**
   * Repeats `work` until the process drains.
   * @param isOutage whether an error only means that PostgreSQL is unavailable.
   */
  repeat(task: string, intervalMs: number, work: Work, isOutage: (error: unknown) => boolean): void {
    const onError = (error: unknown): void =>
      this.logger.error(isOutage(error) ? 'task waits for PostgreSQL' : 'task failed', { task, error });
    this.own(`task ${task}`, new Repeating(intervalMs, work, onError));
  }

  /** Repeats `work` like {@link repeat}, in one process of the app at a time. */
  repeatElected(
    elections: Elections,
    task: string,
    intervalMs: number,
    work: Work,
    isOutage: (error: unknown) => boolean,
  ): void {
    const elected = elections.add({ name: `${this.app} ${task}`, intervalMs, work });
    // Resources close in the reverse order: the task ends before its lease.
    this.own(`lease ${task}`, { close: () => elected.release().catch(() => undefined) });
    this.repeat(task, intervalMs, (signal) => elected.tick(signal), isOutage);
  }

  /** Health of the process: the checks of its database, its producer and the app. */
  health(checks: Readonly<Record<string, HealthCheck>> = {}): Health {
    const isClosing = (): boolean => this.lifecycle.isClosing;
    return createHealth(this.logger, { ...this.#checks, ...checks }, isClosing, this.config.INSTANCE_ID);
  }

  /**
   * Serves the health of an app that serves no other HTTP.
   * @returns the port.
   */
  async serveHealth(address: { HEALTH_HOST: string; HEALTH_PORT: number }): Promise<number> {
    const server = await startHealthServer(this.health(), { host: address.HEALTH_HOST, port: address.HEALTH_PORT });
    return this.own('health', server).port;
  }

  /**
   * Call it last: serves the metrics, and logs that the process is up. Without a port, the metrics of the process itself
   * are not collected, because they cost time and would never be read.
   */
  async started(message: string, fields: Record<string, unknown>): Promise<void> {
    await this.#telemetry.ready;
    const { METRICS_HOST: host, METRICS_PORT: port } = this.config;
    if (port !== 0) {
      this.metrics.addProcessMetrics();
      this.own('metrics', await startMetricsServer(this.metrics, { host, port }));
    }
    this.logger.info(message, { ...fields, metricsPort: port === 0 ? null : port });
  }
}
