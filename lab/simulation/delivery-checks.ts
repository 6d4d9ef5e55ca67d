import { ATTEMPTS_PER_RUN, BACKOFF_SECONDS, LEASE_SECONDS, REPLAYS_MAX } from '@callplane/core';
import { groupBy } from '../src/torture/check/facts.js';
import type { Clients } from './clients.js';
import type { Fleet } from './fleet.js';
import type { Plan } from './plan.js';
import type { Backend, Postgres } from './ports/postgres.js';
import { hostOf, type Received, type SimReceivers } from './receivers.js';

/** A guarantee that does not hold. The same name means the same guarantee. */
export interface Violation {
  readonly name: string;
  readonly detail: string;
}

export interface Run {
  readonly plan: Plan;
  readonly postgres: Postgres;
  readonly fleet: Fleet;
  readonly clients: Clients;
  readonly receivers: SimReceivers;
  readonly backend: Backend;
}

export type Row = Record<string, unknown>;

export type Read = (text: string) => Promise<Row[]>;

export const violationsOf = (name: string, rows: readonly Row[]): Violation[] =>
  rows.map(({ id }) => ({ name, detail: String(id) }));

/** Compares the requests that receivers have seen with the rows. */
export async function deliveryViolations({ receivers, plan }: Run, read: Read): Promise<Violation[]> {
  const found: Violation[] = [];
  const rows = await read(`
    SELECT d.id, d.status, d.failure_reason, d.replay_count, d.run_attempts, d.room_id, d.sequence, v.body, v.erased_at,
      split_part(split_part(e.url, '/', 3), '.', 1) AS host
    FROM webhook_deliveries d JOIN events v ON v.id = d.event_id JOIN webhook_endpoints e ON e.id = d.endpoint_id`);
  const byId = new Map(rows.map((row) => [String(row['id']), row]));
  const settled = ['succeeded', 'failed'];
  for (const { id, status, failure_reason: reason, replay_count: replays } of rows) {
    if (!settled.includes(String(status)))
      found.push({ name: 'deliveries-settle', detail: `${String(id)} is ${String(status)}` });
    if (status === 'failed' && reason === null) found.push({ name: 'failures-have-a-reason', detail: String(id) });
    if (Number(replays) > REPLAYS_MAX) found.push({ name: 'replays-bounded', detail: String(id) });
  }
  const seen = groupBy(receivers.received.flat(), ({ deliveryId }) => deliveryId);
  for (const [id, all] of seen) {
    const row = byId.get(id);
    if (row === undefined) found.push({ name: 'deliveries-known', detail: id });
    // An erasure changes the stored bytes, and nothing is sent afterwards.
    else if (all.some(({ body }) => body !== (row['erased_at'] === null ? row['body'] : all[0]?.body))) {
      found.push({ name: 'same-bytes', detail: id });
    }
    for (const replay of new Set(all.map(({ replayCount }) => replayCount))) {
      const times = all.filter(({ replayCount }) => replayCount === replay).length;
      if (times > ATTEMPTS_PER_RUN) found.push({ name: 'attempts-bounded', detail: `${id} was sent ${times} times` });
    }
  }
  for (const { id, status, replay_count: replays } of rows) {
    const proof = seen
      .get(String(id))
      ?.some(({ status: code, replayCount }) => code === 200 && replayCount === replays);
    if (status === 'succeeded' && proof !== true) found.push({ name: 'successes-received', detail: String(id) });
  }
  for (const [index, { ordering, maxConcurrent }] of plan.receivers.entries()) {
    const received = receivers.received[index] ?? [];
    if (maxConcurrent !== null) found.push(...concurrencyViolations(plan, received, maxConcurrent));
    const own = rows.filter(({ host }) => host === hostOf(index).split('.')[0]);
    if (ordering === 'room') found.push(...orderViolations(own, seen));
  }
  return found;
}

/** An endpoint never has more requests at once than its `maxConcurrent`. */
function concurrencyViolations({ faults }: Plan, received: readonly Received[], most: number): Violation[] {
  // A request of a frozen worker stays open after the end of its lease.
  if (faults.some(({ do: what }) => ['freeze', 'outlive lease', 'all pause'].includes(what))) return [];
  return received.flatMap(({ atMs, deliveryId }, at) => {
    const open = received.slice(0, at).filter((one) => {
      // Time may jump past the end of a lease while a request hangs.
      return one.endedAtMs !== null && one.endedAtMs > atMs && atMs - one.atMs < LEASE_SECONDS * 500;
    });
    return open.length < most ? [] : [{ name: 'concurrency-of-endpoints', detail: `${deliveryId} came too early` }];
  });
}

/** The next event of a room comes only after the one before was accepted, or has failed for good. */
function orderViolations(rows: readonly Row[], seen: ReadonlyMap<string, Received[]>): Violation[] {
  const found: Violation[] = [];
  const firstRun = (row: Row): Received[] =>
    (seen.get(String(row['id'])) ?? []).filter(({ replayCount }) => replayCount === 0);
  for (const roomId of new Set(rows.map((row) => row['room_id']))) {
    const line = rows
      .filter((row) => row['room_id'] === roomId && roomId !== null)
      .sort((a, b) => Number(a['sequence']) - Number(b['sequence']));
    for (const [at, row] of line.entries()) {
      const next = line[at + 1];
      if (next === undefined) break;
      const nextAtMs = Math.min(...firstRun(next).map(({ atMs }) => atMs));
      const acceptedAtMs = Math.min(...firstRun(row).flatMap(({ atMs, status }) => (status === 200 ? [atMs] : [])));
      const failed = acceptedAtMs === Infinity && (row['status'] === 'failed' || Number(row['replay_count']) > 0);
      if (nextAtMs < acceptedAtMs && !failed) {
        found.push({ name: 'order-of-rooms', detail: `${String(next['id'])} came before ${String(row['id'])}` });
      }
    }
  }
  return found;
}

/** The attempts of a run follow its schedule. */
export async function attemptViolations({ clients, fleet }: Run, read: Read): Promise<Violation[]> {
  const found: Violation[] = [];
  const rows = await read(`
    SELECT a.delivery_id AS id, d.endpoint_id AS endpoint, a.replay_count AS replay, a.attempt, a.outcome,
      (extract(epoch FROM a.started_at) * 1000)::float8 AS "startedAtMs", a.duration_ms AS "durationMs"
    FROM webhook_attempts a JOIN webhook_deliveries d ON d.id = a.delivery_id
    ORDER BY a.delivery_id, a.replay_count, a.attempt`);
  // An attempt whose lease ended is followed by the next one at once.
  const expired = fleet.lines.filter(({ message }) => message === 'delivery lease expired');
  const isFree = new Set([...clients.hastened, ...expired.map(({ fields }) => fields['deliveryId'])]);
  for (const [at, row] of rows.entries()) {
    const next = rows[at + 1];
    if (Number(row['attempt']) > ATTEMPTS_PER_RUN) found.push({ name: 'attempts-bounded', detail: String(row['id']) });
    if (next?.['id'] !== row['id'] || next?.['replay'] !== row['replay']) continue;
    if (row['outcome'] === 'success') {
      const detail = `attempt ${String(next?.['attempt'])} of ${String(row['id'])}`;
      found.push({ name: 'nothing-after-success', detail });
    }
    const delayMs = (BACKOFF_SECONDS[Number(row['attempt']) - 1] ?? 0) * 1000;
    const waitedMs = Number(next?.['startedAtMs']) - Number(row['startedAtMs']) - Number(row['durationMs']);
    const isNext = Number(next?.['attempt']) === Number(row['attempt']) + 1;
    // Both times are PostgreSQL's, rounded to milliseconds.
    if (isNext && waitedMs < delayMs - 5 && !isFree.has(row['id']) && !isFree.has(row['endpoint'])) {
      const detail = `${String(row['id'])}: ${waitedMs} ms instead of ${delayMs}`;
      found.push({ name: 'delays-of-the-schedule', detail });
    }
  }
  return found;
}
