import { SETTLED_AFTER_MS } from '../../apps/cleanup-worker/src/reconcile/outage-watch.js';
import { GRACE_MS } from './apps/cleanup-worker.js';
import type { Run, Violation } from './delivery-checks.js';

/** Until a fleet without faults attempts a due row: 15 s, and the time of the attempt. */
const OVERDUE_MS = 25_000;
const ROUND_MS = 6000;
const ROUNDS_MAX = 120;

export type Until = (isOver: () => boolean) => Promise<void>;

/**
 * Open rows, and when work on them can begin at the latest: a leased one when its lease ends; a delivery that waits for
 * another one of its endpoint or its room when the lease of that ends. One behind another of its line waits for that.
 */
const PENDING = `
  SELECT id, (extract(epoch FROM coalesce(lease_expires_at, due_at)) * 1000)::float8 AS "dueMs",
    coalesce(lease_expires_at > sim.now(), false) AS "isLeased"
  FROM runtime_operations WHERE status = 'pending'
  UNION ALL
  SELECT d.id, (extract(epoch FROM coalesce(before.until, d.due_at)) * 1000)::float8,
    coalesce(before.until > sim.now(), false)
  FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
  CROSS JOIN LATERAL (
    SELECT max(b.lease_expires_at) AS until FROM webhook_deliveries b
    WHERE b.endpoint_id = d.endpoint_id AND b.status = 'delivering'
      AND (b.id = d.id OR e.max_concurrent IS NOT NULL OR (e.ordering = 'room' AND b.room_id = d.room_id))
  ) before
  WHERE d.status IN ('pending', 'delivering') AND NOT (e.ordering = 'room' AND EXISTS (
    SELECT 1 FROM webhook_deliveries b WHERE b.endpoint_id = d.endpoint_id AND b.room_id = d.room_id
      AND (b.replay_count > 0) = (d.replay_count > 0) AND b.status IN ('pending', 'delivering')
      AND b.sequence < d.sequence))
  UNION ALL
  SELECT id, (extract(epoch FROM coalesce(lease_expires_at, created_at)) * 1000)::float8,
    coalesce(lease_expires_at > sim.now(), false)
  FROM webhook_recoveries WHERE status = 'pending'
  UNION ALL
  SELECT id, (extract(epoch FROM started_at) * 1000)::float8 + max_duration_seconds * 1000, false
  FROM recordings WHERE status = 'recording'`;

/**
 * Runs without faults until nothing is pending.
 * @returns deliveries and operations without an attempt.
 */
export async function settle({ clients, backend, fleet: { world }, plan }: Run, until: Until): Promise<Violation[]> {
  world.note('the faults end');
  let calmSinceMs = world.nowMsValue;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const untilMs = world.nowMsValue + ROUND_MS;
    await until(() => world.nowMsValue >= untilMs);
    await backend.setTime(world.nowMsValue, plan.seed);
    const { rows } = await backend.client.query<{ id: string; dueMs: number; isLeased: boolean }>(PENDING);
    const overdue = rows.filter(({ dueMs, isLeased }) => !isLeased && dueMs < world.nowMsValue - OVERDUE_MS);
    if (world.nowMsValue - calmSinceMs >= OVERDUE_MS && overdue.length > 0) {
      const detail = overdue.map(({ id }) => id).join(', ');
      return [{ name: 'due-rows-are-attempted', detail }];
    }
    if (rows.length === 0 && clients.pending === 0 && round > 2) break;
    const dueMs = rows.map((row) => row.dueMs);
    if (Math.min(...dueMs) <= world.nowMsValue + ROUND_MS || rows.length === 0) continue;
    // All at once, or each would need a round of its own.
    await world.jump(Math.max(...dueMs) - world.nowMsValue);
    calmSinceMs = world.nowMsValue;
  }
  // Until lost sessions have ended, after the grace and the time in which silence proves nothing.
  await world.jump(GRACE_MS - 5000);
  const untilMs = world.nowMsValue + SETTLED_AFTER_MS + 2 * ROUND_MS;
  await until(() => world.nowMsValue >= untilMs);
  return [];
}
