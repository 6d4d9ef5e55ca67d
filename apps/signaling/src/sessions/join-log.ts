import type { Connection } from '../connections/connection.js';
import type { Deps } from '../deps.js';

/** What a join or a resumption came to, in the log and the metrics. */
export function logJoin(
  deps: Pick<Deps, 'logger' | 'metrics'>,
  connection: Connection,
  { startedAtMs, ...fields }: { startedAtMs: number; outcome: string; [field: string]: unknown },
): void {
  const durationMs = Math.round((performance.now() - startedAtMs) * 10) / 10;
  deps.metrics.join(fields.outcome, durationMs);
  deps.logger.info('join', { connectionId: connection.id, ...connection.logFields, durationMs, ...fields });
}
