import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Lifecycle } from '../lifecycle/lifecycle.js';

/** What to call a metric, and how it is divided. Labels are of few values each: never an id, a path or a URL. */
export interface MetricSettings<Label extends string> {
  /** `callplane_…`, with its unit last. */
  name: string;
  help: string;
  labels?: readonly Label[];
}

interface Known<Label extends string> {
  /**
   * Label values that are shown as 0 from the start. Prometheus sees how much a counter grows between two scrapes: one
   * that is first shown as 1 has not grown, and no alert hears of what it counted.
   */
  known?: readonly Readonly<Record<Label, string>>[];
}

/** The numbers of one process. They are counted whether or not anybody may read them. */
export interface Metrics {
  counter<Label extends string = never>(settings: MetricSettings<Label> & Known<Label>): Counter<Label>;
  histogram<Label extends string = never>(
    settings: MetricSettings<Label> & Known<Label> & { buckets: readonly number[] },
  ): Histogram<Label>;
  /** @param read asked for the value at each scrape. */
  gauge(settings: Omit<MetricSettings<never>, 'labels'>, read: () => number): void;
  /** One gauge of several values. @param read asked at each scrape for the values by the label's. */
  gauges(settings: { name: string; help: string; label: string }, read: () => Readonly<Record<string, number>>): void;
  /** All of them, in Prometheus' text format. */
  text(): Promise<string>;
  /** Adds those of the process itself: CPU, memory, garbage collection, lag of the event loop. */
  addProcessMetrics(): void;
}

/** For times from a millisecond to the longest attempt, in seconds. */
export const SECONDS_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

/** @param app its name stands in every line as the label `app`. */
export function createMetrics({ app }: { app: string }): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ app });
  const registers = [registry];
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
          this.set(read());
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
    text: () => registry.metrics(),
    addProcessMetrics: () => collectDefaultMetrics({ register: registry }),
  };
}

/**
 * For `main.ts`: serves the metrics on a port of their own until the process drains. Without a port nobody reads them,
 * and those of the process itself, which cost something, are not collected either.
 * @returns the port; null when there is none.
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

/** `GET /metrics` and nothing else. */
export async function startMetricsServer(
  metrics: Pick<Metrics, 'text'>,
  address: { host: string; port: number },
): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    const answer = (status: number, text: string, type = 'text/plain; charset=utf-8'): void => {
      response.writeHead(status, { 'content-type': type, connection: 'close' });
      response.end(request.method === 'HEAD' ? undefined : text);
    };
    if (request.url?.split('?')[0] !== '/metrics') answer(404, 'not found\n');
    else if (request.method !== 'GET' && request.method !== 'HEAD') answer(405, 'method not allowed\n');
    else {
      metrics.text().then(
        (text) => answer(200, text, Registry.PROMETHEUS_CONTENT_TYPE),
        () => answer(500, 'the metrics cannot be collected\n'),
      );
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** The pool of an app's database connections. */
export function addDatabaseMetrics(
  metrics: Metrics,
  connections: () => { used: number; idle: number; waiting: number },
): void {
  metrics.gauges(
    {
      name: 'callplane_database_connections',
      help: 'Connections of the pool by state; `waiting` are callers without one.',
      label: 'state',
    },
    connections,
  );
}
