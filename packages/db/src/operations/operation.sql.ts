import { ATTEMPTS_PER_RUN, type OperationKind } from '@callplane/core';
import { Prisma } from '../generated/client.js';

/** `isExhausted` of core, for rows of operations and of deliveries. */
export const isExhausted = Prisma.sql`run_attempts >= ${ATTEMPTS_PER_RUN}::int`;

export const isUnleased = Prisma.sql`(lease_expires_at IS NULL OR lease_expires_at <= now())`;

export const OPERATION_COLUMNS = Prisma.sql`id, kind, status, attempts, last_error AS "lastError",
  completed_at AS "completedAt"`;

/** The columns of a `WakeableOperation` that an `OperationState` lacks. */
export const WAKE_UP_COLUMNS = Prisma.sql`environment_id AS "environmentId", run, run_attempts AS "runAttempts"`;

export const WAKEABLE_COLUMNS = Prisma.sql`id, kind, ${WAKE_UP_COLUMNS}`;

/**
 * The operations of a kind that wait for a worker, with their `position` from 1 on: the first of every environment before
 * the second of any. The environment goes first whose latest claim is the longest ago.
 */
export const inTurns = (kind: OperationKind, which: Prisma.Sql = Prisma.empty) => Prisma.sql`
    WITH waiting AS MATERIALIZED (
      SELECT id, subject_id, environment_id, due_at,
        row_number() OVER (PARTITION BY environment_id ORDER BY due_at, id) AS place
      FROM runtime_operations WHERE kind = ${kind} AND status = 'pending' AND ${isUnleased} ${which}
    ), turn AS (
      SELECT environment_id, (
        SELECT max(claimed_at) FROM runtime_operations o
        WHERE o.kind = ${kind} AND o.environment_id = w.environment_id AND o.claimed_at IS NOT NULL
      ) AS latest
      FROM waiting w WHERE place = 1
    )
    SELECT id, subject_id, row_number() OVER (ORDER BY place, latest NULLS FIRST, due_at, id) AS position
    FROM waiting JOIN turn USING (environment_id)`;
