import type { Logger, Metrics } from '@callplane/runtime';

/**
 * `events`: what is new in an environment. `backlog`: what a client has missed. `callers`: whether the key or session
 * of a stream still works.
 */
const STREAM_READS = ['events', 'backlog', 'callers'] as const;
export type StreamRead = (typeof STREAM_READS)[number];

/** Reports a read that failed. The streams stay open and the read is repeated, so no caller sees the error. */
export type OnReadFailed = (read: StreamRead, error: unknown) => void;

/** Shortest time between two lines about the same read, in milliseconds. Reads repeat every second during an outage. */
const LINE_EVERY_MS = 60_000;

/** Counts each failed read of the streams, and writes a line about it once a minute. */
export function reportReadFailures(
  logger: Logger,
  metrics: Metrics,
  monotonicMs: () => number = () => performance.now(),
): OnReadFailed {
  const failures = metrics.counter({
    name: 'callplane_stream_read_failures_total',
    help: 'Reads for the streams of changes that failed, by what was read.',
    labels: ['read'],
    known: STREAM_READS.map((read) => ({ read })),
  });
  const lines = new Map<StreamRead, { atMs: number; failed: number }>();
  return (read, error) => {
    failures.inc({ read });
    const nowMs = monotonicMs();
    const last = lines.get(read);
    const failed = (last?.failed ?? 0) + 1;
    if (last !== undefined && nowMs - last.atMs < LINE_EVERY_MS) {
      lines.set(read, { ...last, failed });
      return;
    }
    lines.set(read, { atMs: nowMs, failed: 0 });
    logger.warn('stream read failed', { read, failed, error });
  };
}
