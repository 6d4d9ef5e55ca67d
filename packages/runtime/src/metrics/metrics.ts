import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { startSmallServer } from '../http/small-server.js';
import { droppedLogLines } from '../logging/line-writer.js';

interface MetricSettings<Label extends string> {
  /** `callplane_…`, with the unit at the end. */
  name: string;
  help: string;
  /** Every label has only a few values, so it is never an id, a path or a URL. */
  labels?: readonly Label[];
  /**
   * Label values that are shown as 0 from the start. Prometheus computes how much a counter grows between two scrapes.
   * A counter that first appears as 1 has not grown, so its first event would trigger no alert.
   */
  known?: readonly Readonly<Record<Label, string>>[];
}

interface ByLabel {
  name: string;
  help: string;
  label: string;
}

/** Returns values by label value. It is called at each scrape. */
type ReadByLabel = () => Readonly<Record<string, number>>;

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

/** The metrics of one process. They are counted even if no port serves them. */
export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics({ app }: { app: string }) {
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
    counter<Label extends string = never>(settings: MetricSettings<Label>): Counter<Label> {
      const { name, help, labels = [], known = [] } = settings;
      const counter = new Counter({ name, help, labelNames: labels, registers });
      for (const values of known) counter.inc(values, 0);
      return counter;
    },
    histogram<Label extends string = never>(
      settings: MetricSettings<Label> & { buckets: readonly number[] },
    ): Histogram<Label> {
      const { name, help, labels = [], known = [], buckets } = settings;
      const histogram = new Histogram({ name, help, labelNames: labels, buckets: [...buckets], registers });
      for (const values of known) histogram.zero(values);
      return histogram;
    },
    /** @param read called at each scrape; returns the value, or null if it is unknown: the gauge is then absent. */
    gauge({ name, help }: { name: string; help: string }, read: () => number | null): void {
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
    gauges({ name, help, label }: ByLabel, read: ReadByLabel): void {
      new Gauge({ name, help, labelNames: [label], registers, collect: fill(label, read) });
    },
    /**
     * One counter with several values that the caller counts itself, because each increment of a counter with labels
     * takes about 0.5 µs.
     */
    totals({ name, help, label }: ByLabel, read: ReadByLabel): void {
      new Counter({ name, help, labelNames: [label], registers, collect: fill(label, read) });
    },
    text: () => registry.metrics(),
    /** Returns all metrics with their values. The types of prom-client lack the type of a metric as text. */
    values: async () => (await registry.getMetricsAsJSON()) as unknown as MetricValues[],
    /** Adds metrics of the process itself: CPU, memory, garbage collection, event-loop lag. Idempotent. */
    addProcessMetrics(): void {
      if (hasProcessMetrics) return;
      hasProcessMetrics = true;
      collectDefaultMetrics({ register: registry });
    },
  };
}

/** Replaces the values of a metric at a scrape. */
function fill(label: string, read: ReadByLabel) {
  return function (this: Counter | Gauge): void {
    this.reset();
    for (const [value, number] of Object.entries(read())) this.inc({ [label]: value }, number);
  };
}

export function startMetricsServer(
  metrics: Pick<Metrics, 'text'>,
  address: { host: string; port: number },
): Promise<{ port: number; close(): Promise<void> }> {
  const page = async () => ({ status: 200, type: Registry.PROMETHEUS_CONTENT_TYPE, text: await metrics.text() });
  return startSmallServer({ '/metrics': page }, address);
}
