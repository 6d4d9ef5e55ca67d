import { SECONDS_BUCKETS, type Metrics } from '@callplane/runtime';

/**
 * `no_key`: the key is missing or malformed. `invalid_key`: the key is unknown, revoked or expired. `too_many`: the key
 * is unknown and its address has sent too many unknown keys.
 */
const AUTHENTICATION_FAILURES = ['no_key', 'invalid_key', 'too_many'] as const;
type AuthenticationFailure = (typeof AUTHENTICATION_FAILURES)[number];

export interface RequestMetrics {
  /** @param route the matched pattern; null if no route matched. */
  answered(method: string, route: string | null, status: number, durationMs: number): void;
  /** Counts a request under `/v1` that was refused before its caller was known. */
  unauthenticated(reason: AuthenticationFailure): void;
}

/** The request metrics of the API. docs/operations/monitoring.md explains how to read them. */
export function requestMetrics(metrics: Metrics): RequestMetrics {
  const requests = metrics.counter({
    name: 'callplane_http_requests_total',
    help: 'Requests, by route pattern, method and response status.',
    labels: ['method', 'route', 'status'],
  });
  const duration = metrics.histogram({
    name: 'callplane_http_request_duration_seconds',
    help: 'Time from the request headers to the end of the response, without the time that it waited for events, in seconds.',
    labels: ['method', 'route'],
    buckets: SECONDS_BUCKETS,
  });
  const unauthenticated = metrics.counter({
    name: 'callplane_http_authentication_failures_total',
    help: 'Requests refused because of their API key, by reason.',
    labels: ['reason'],
    known: AUTHENTICATION_FAILURES.map((reason) => ({ reason })),
  });
  return {
    unauthenticated: (reason) => unauthenticated.inc({ reason }),
    answered: (method, route, status, durationMs) => {
      // All unmatched paths share one label: paths contain ids or arbitrary hostile text, and each would be a new
      // series.
      const labels = { method, route: route ?? 'other', status };
      requests.inc(labels);
      duration.observe({ method, route: labels.route }, durationMs / 1000);
    },
  };
}
