import type { Logger } from '@callplane/runtime';
import type { Connection } from '../connections/connection.js';

export interface JoinLogDeps {
  logger: Logger;
  metrics: {
    /** Counts a join or resumption by the outcome in its log line. */
    join(outcome: string, durationMs: number): void;
  };
}

/** Logs the outcome of a join or resumption and counts it in the metrics. */
export function logJoin(
  deps: JoinLogDeps,
  connection: Connection,
  { startedAtMs, ...fields }: { startedAtMs: number; outcome: string; [field: string]: unknown },
): void {
  const durationMs = Math.round((performance.now() - startedAtMs) * 10) / 10;
  deps.metrics.join(fields.outcome, durationMs);
  deps.logger.info('join', { connectionId: connection.id, ...connection.logFields, durationMs, ...fields });
}
