import { SECONDS_BUCKETS, type Metrics } from '@callplane/runtime';

export interface RequestMetrics {
  /** @param route the pattern that matched; null where none did. */
  answered(method: string, route: string | null, status: number, durationMs: number): void;
}

/** What the API counts of its requests; docs/operations.md says what to make of it. */
export function requestMetrics(metrics: Metrics): RequestMetrics {
  const requests = metrics.counter({
    name: 'callplane_http_requests_total',
    help: 'Requests, by route pattern, method and status of the answer.',
    labels: ['method', 'route', 'status'],
  });
  const duration = metrics.histogram({
    name: 'callplane_http_request_duration_seconds',
    help: 'From the head of a request to the end of its answer.',
    labels: ['method', 'route'],
    buckets: SECONDS_BUCKETS,
  });
  return {
    answered: (method, route, status, durationMs) => {
      // Paths hold ids, and hostile ones hold anything: what matched no pattern is one route.
      const labels = { method, route: route ?? 'other', status };
      requests.inc(labels);
      duration.observe({ method, route: labels.route }, durationMs / 1000);
    },
  };
}
