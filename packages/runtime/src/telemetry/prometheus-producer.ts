import { ValueType, type HrTime } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  DataPointType,
  type CollectionResult,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import type { MetricValues } from '../metrics/metrics.js';

type Labels = Record<string, string | number>;

/** Gives the metrics of prom-client to OpenTelemetry, with the same names and labels. */
export class PrometheusProducer implements MetricProducer {
  /** Counters of the process began with it. */
  readonly #startTime = hrTimeOf(Date.now() - process.uptime() * 1000);

  constructor(
    private readonly read: () => Promise<MetricValues[]>,
    private readonly resource: Resource,
  ) {}

  async collect(): Promise<CollectionResult> {
    const span = { startTime: this.#startTime, endTime: hrTimeOf(Date.now()) };
    const metrics = (await this.read()).flatMap((metric) => metricOf(metric, span));
    return {
      resourceMetrics: { resource: this.resource, scopeMetrics: [{ scope: { name: 'callplane' }, metrics }] },
      errors: [],
    };
  }
}

interface TimeSpan {
  startTime: HrTime;
  endTime: HrTime;
}

function metricOf(metric: MetricValues, span: TimeSpan): MetricData[] {
  const { name, help, type } = metric;
  const shared = {
    descriptor: { name, description: help, unit: unitOf(name), valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const points = () => metric.values.map(({ labels, value }) => ({ ...span, attributes: labels, value }));
  switch (type) {
    case 'counter':
      return [{ ...shared, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints: points() }];
    case 'gauge':
      return [{ ...shared, dataPointType: DataPointType.GAUGE, dataPoints: points() }];
    case 'histogram':
      return [{ ...shared, dataPointType: DataPointType.HISTOGRAM, dataPoints: histogramsOf(metric, span) }];
    default:
      // Callplane and prom-client's own metrics have no summaries.
      return [];
  }
}

interface Distribution {
  labels: Labels;
  sum: number;
  count: number;
  buckets: { le: number; upTo: number }[];
}

function histogramsOf({ name, values }: MetricValues, span: TimeSpan) {
  const distributions = new Map<string, Distribution>();
  for (const { metricName = '', labels, value } of values) {
    const { le, ...others } = labels;
    const key = JSON.stringify(others);
    const found = distributions.get(key) ?? { labels: others, sum: 0, count: 0, buckets: [] };
    distributions.set(key, found);
    if (metricName === `${name}_sum`) found.sum = value;
    else if (metricName === `${name}_count`) found.count = value;
    else if (le !== undefined && le !== '+Inf') found.buckets.push({ le: Number(le), upTo: value });
  }
  return [...distributions.values()].map(({ labels, sum, count, buckets }) => {
    buckets.sort((a, b) => a.le - b.le);
    const upTo = [...buckets.map((bucket) => bucket.upTo), count];
    return {
      ...span,
      attributes: labels,
      value: {
        sum,
        count,
        buckets: {
          boundaries: buckets.map(({ le }) => le),
          // Prometheus counts the values up to a bound, OpenTelemetry those between two.
          counts: upTo.map((total, index) => total - (upTo[index - 1] ?? 0)),
        },
      },
    };
  });
}

function unitOf(name: string): string {
  const base = name.replace(/_total$/, '');
  if (base.endsWith('_seconds')) return 's';
  return base.endsWith('_bytes') ? 'By' : '';
}

function hrTimeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
