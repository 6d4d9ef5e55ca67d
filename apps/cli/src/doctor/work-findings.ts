import type { Backlog, RunningApp } from '@callplane/db';
import type { QueueDepth } from '@callplane/queue';
import { failure, ok, warning, type Finding } from './findings.js';

/** Due rows wait for wake-ups, scans and slots for less. An older row waits for workers. */
const BACKLOG_AGE_MS_MAX = 60_000;
/** A worker scans PostgreSQL at least every 10 s. One that has run no statement for longer does not work. */
const SILENT_MS_MAX = 20_000;

export const seconds = (ms: number): string => `${(Math.max(0, ms) / 1000).toFixed(1)} s`;

/**
 * @param running the processes that are connected to PostgreSQL. Their latest statements prove that they work, whatever
 *   state Redis is in.
 * @param depths the queue depths in Redis; null if Redis cannot be queried.
 */
export function checkQueue(
  backlog: Backlog,
  running: readonly RunningApp[],
  depths: readonly QueueDepth[] | null,
): Finding {
  const app = backlog.queue === 'webhook-delivery' ? 'webhook-worker' : 'cleanup-worker';
  const check = `queue ${backlog.queue}`;
  const detail =
    backlog.due === 0 ? 'nothing is due' : `${backlog.due} due, the oldest for ${seconds(backlog.oldestDueMs ?? 0)}`;
  const processes = running.filter((process) => process.app === app);
  const [latest = null] = processes.map(({ silentMs }) => silentMs ?? 0).sort((a, b) => a - b);
  const working = processes.filter(({ silentMs }) => (silentMs ?? 0) <= SILENT_MS_MAX).length;
  // Workers of the previous release have no name in PostgreSQL.
  const inRedis = depths?.find(({ queue }) => queue === backlog.queue)?.workers ?? 0;
  if (latest === null && inRedis === 0) {
    return failure(check, `${detail}; no ${app} is connected`, `Start a ${app} and check its log.`);
  }
  if (latest !== null && working === 0) {
    const advice = `Check the log of the ${app} and restart it.`;
    return failure(check, `${detail}; no ${app} has read PostgreSQL for ${seconds(latest)}`, advice);
  }
  const workers = latest === null ? inRedis : working;
  if ((backlog.oldestDueMs ?? 0) > BACKLOG_AGE_MS_MAX) {
    return warning(check, detail, `Start another ${app} (${workers} run).`);
  }
  const proof = latest === null ? '' : `, which read PostgreSQL ${seconds(latest)} ago`;
  return ok(check, `${detail}; ${workers} ${workers === 1 ? 'worker' : 'workers'}${proof}`);
}
