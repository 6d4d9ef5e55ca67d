import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { startSmallServer } from '../http/small-server.js';
import { droppedLogLines } from '../logging/line-writer.js';
import type { Lifecycle } from '../lifecycle/lifecycle.js';

/** Name and labels of a metric. Every label has only a few values, so it is never an id, a path or a URL. */
interface MetricSettings<Label extends string> {
  /** `callplane_…`, with the unit at the end. */
  name: string;
  help: string;
  labels?: readonly Label[];
}

interface Known<Label extends string> {
  /**
   * Label values that are shown as 0 from the start. Prometheus computes how much a counter grows between two scrapes.
   * A counter that first appears as 1 has not grown, so its first event would trigger no alert.
   */
  known?: readonly Readonly<Record<Label, string>>[];
}

/** The metrics of one process. They are counted even if no port serves them. */
export interface Metrics {
  counter<Label extends string = never>(settings: MetricSettings<Label> & Known<Label>): Counter<Label>;
  histogram<Label extends string = never>(
    settings: MetricSettings<Label> & Known<Label> & { buckets: readonly number[] },
  ): Histogram<Label>;
  /** @param read called at each scrape; returns the value, or null if it is unknown: the gauge is then absent. */
  gauge(settings: Omit<MetricSettings<never>, 'labels'>, read: () => number | null): void;
  /**
   * One gauge with several values.
   * @param read called at each scrape; returns the values by label value.
   */
  gauges(settings: { name: string; help: string; label: string }, read: () => Readonly<Record<string, number>>): void;
  /**
   * One counter with several values that the caller counts itself, because each increment of a counter with labels takes
   * about 0.5 µs.
   * @param read called at each scrape; returns the totals by label value.
   */
  totals(settings: { name: string; help: string; label: string }, read: () => Readonly<Record<string, number>>): void;
  /** Returns all metrics in Prometheus' text format. */
  text(): Promise<string>;
  /** Returns all metrics with their values. */
  values(): Promise<MetricValues[]>;
  /** Adds metrics of the process itself: CPU, memory, garbage collection, event-loop lag. Idempotent. */
  addProcessMetrics(): void;
}

export interface MetricValues {
  name: string;
  help: string;
  type: 'counter' | 'gauge' | 'histogram' | 'summary';
  values: {
    /** Of a histogram: its name with `_bucket`, `_sum` or `_count`. */
    metricName?: string;
    labels: Record<string, string | number>;
    value: number;
  }[];
}

/** Buckets for durations from a millisecond to the longest attempt, in seconds. */
export const SECONDS_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

/** @param app name of the app, the label `app` of every metric. */
export function createMetrics({ app }: { app: string }): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ app });
  const registers = [registry];
  let hasProcessMetrics = false;
  new Counter({
    name: 'callplane_log_lines_dropped_total',
    help: 'Log lines that could not be written, because the disk is full or nothing reads standard output.',
    registers,
    collect() {
      this.reset();
      this.inc(droppedLogLines());
    },
  });
  return {
    counter: ({ name, help, labels = [], known = [] }) => {
      const counter = new Counter({ name, help, labelNames: labels, registers });
      for (const values of known) counter.inc(values, 0);
      return counter;
    },
    histogram: ({ name, help, labels = [], known = [], buckets }) => {
      const histogram = new Histogram({ name, help, labelNames: labels, buckets: [...buckets], registers });
      for (const values of known) histogram.zero(values);
      return histogram;
    },
    gauge: ({ name, help }, read) => {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          const value = read();
          if (value === null) this.remove();
          else this.set(value);
        },
      });
    },
    gauges: ({ name, help, label }, read) => {
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          this.reset();
          for (const [value, number] of Object.entries(read())) this.set({ [label]: value }, number);
        },
      });
    },
    totals: ({ name, help, label }, read) => {
      new Counter({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          this.reset();
          for (const [value, number] of Object.entries(read())) this.inc({ [label]: value }, number);
        },
      });
    },
    text: () => registry.metrics(),
    // The types of prom-client lack the type of a metric as text.
    values: async () => (await registry.getMetricsAsJSON()) as unknown as MetricValues[],
    addProcessMetrics: () => {
      if (hasProcessMetrics) return;
      hasProcessMetrics = true;
      collectDefaultMetrics({ register: registry });
    },
  };
}

/**
 * For `main.ts`: serves the metrics on their own port until the process drains. Without a port, the metrics of the
 * process itself are not collected, because they cost time and would never be read.
 * @returns the port, or null if no port is configured.
 */
export async function serveMetrics(
  metrics: Metrics,
  address: { METRICS_HOST: string; METRICS_PORT: number },
  lifecycle: Lifecycle,
): Promise<number | null> {
  if (address.METRICS_PORT === 0) return null;
  metrics.addProcessMetrics();
  const server = await startMetricsServer(metrics, { host: address.METRICS_HOST, port: address.METRICS_PORT });
  lifecycle.onClose('metrics', () => server.close());
  return server.port;
}

/** Serves `GET /metrics` and no other path. */
export function startMetricsServer(
  metrics: Pick<Metrics, 'text'>,
  address: { host: string; port: number },
): Promise<{ port: number; close(): Promise<void> }> {
  const page = async () => ({ status: 200, type: Registry.PROMETHEUS_CONTENT_TYPE, text: await metrics.text() });
  return startSmallServer({ '/metrics': page }, address);
}

/** Adds gauges of an app's database connection pool. */
export function addDatabaseMetrics(
  metrics: Metrics,
  connections: () => { used: number; idle: number; waiting: number },
): void {
  metrics.gauges(
    {
      name: 'callplane_database_connections',
      help: 'Connections of the database pool, by state. `waiting` counts callers without a connection.',
      label: 'state',
    },
    connections,
  );
}

/** Adds a gauge of why this process cannot use Redis: 1 for the current reason, 0 for all others. */
export function addRedisMetrics(metrics: Metrics, reasons: readonly string[], reason: () => string | null): void {
  metrics.gauges(
    {
      name: 'callplane_redis_unusable',
      help: 'Reason why this process cannot use Redis: 1 for the current reason, 0 for all others.',
      label: 'reason',
    },
    () => {
      const present = reason();
      return Object.fromEntries(reasons.map((each) => [each, each === present ? 1 : 0]));
    },
  );
}
