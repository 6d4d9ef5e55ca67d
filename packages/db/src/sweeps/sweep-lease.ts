// One process does each periodic task for all processes of its app (docs/decisions/0007). A row of `sweeps` holds the
// lease, because locks of a session do not pass a connection pooler.

import { randomUUID } from 'node:crypto';
import type { TypedSql } from '../client/database.js';

/** A lease that ends later than this was written before PostgreSQL's clock was set back, and counts as expired. */
const LEASE_MS_MAX = 600_000;

interface SweepLease {
  name: string;
  holder: string;
  leaseMs: number;
  /** Time since this process last completed the task, in milliseconds; null if it has not since it took the lease. */
  finishedMsAgo: number | null;
}

/**
 * Takes the lease if it is free or expired, or prolongs it if the caller holds it. Writes nothing otherwise.
 * @returns the `previous` holder, and the milliseconds since any process last completed the task; null if not known.
 */
export async function takeSweep(db: TypedSql, lease: SweepLease) {
  const { name, holder, leaseMs, finishedMsAgo } = lease;
  const [standing] = await db.$queryRaw<[{ isHolder: boolean; previous: string | null; finishedMsAgo: number | null }]>`
    WITH known AS MATERIALIZED (
      SELECT holder, finished_at,
        held_until > now() AND held_until <= now() + ${LEASE_MS_MAX}::int * interval '1 millisecond' AS is_held
      FROM sweeps WHERE name = ${name}
    ), taken AS (
      INSERT INTO sweeps AS s (name, holder, held_until, finished_at)
      SELECT ${name}, ${holder}, now() + ${leaseMs}::int * interval '1 millisecond',
        now() - ${finishedMsAgo}::float8 * interval '1 millisecond'
      WHERE NOT EXISTS (SELECT 1 FROM known WHERE is_held AND holder <> ${holder})
      ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until,
        finished_at = coalesce(excluded.finished_at, s.finished_at)
      WHERE s.holder = excluded.holder OR s.held_until <= now()
        OR s.held_until > now() + ${LEASE_MS_MAX}::int * interval '1 millisecond'
      RETURNING finished_at
    )
    SELECT EXISTS (SELECT 1 FROM taken) AS "isHolder", (SELECT holder FROM known) AS previous,
      (extract(epoch FROM now() - coalesce((SELECT finished_at FROM taken), (SELECT finished_at FROM known)))
        * 1000)::float8 AS "finishedMsAgo"`;
  return standing;
}

/** Ends the lease of a process that stops, so that another one takes it at once, also if the clock steps back a little. */
export async function releaseSweep(db: TypedSql, { name, holder }: Pick<SweepLease, 'name' | 'holder'>): Promise<void> {
  await takeSweep(db, { name, holder, leaseMs: -1000, finishedMsAgo: null });
}

/**
 * The leases of one process, as elections of the runtime need them.
 * @param processName for operators. Processes of two containers may have the same one.
 */
export function sweepLeases(db: TypedSql, processName: string) {
  const holder = `${processName} ${randomUUID().slice(0, 8)}`;
  return {
    take: (lease: Omit<SweepLease, 'holder'>) => takeSweep(db, { ...lease, holder }),
    release: (name: string) => releaseSweep(db, { name, holder }),
  };
}
