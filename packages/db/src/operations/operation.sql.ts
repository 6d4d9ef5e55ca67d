import { ATTEMPTS_PER_RUN } from '@callplane/core';
import { Prisma } from '../generated/client.js';

/** `isExhausted` of core, for rows of operations and of deliveries. */
export const isExhausted = Prisma.sql`run_attempts >= ${ATTEMPTS_PER_RUN}::int`;

export const isUnleased = Prisma.sql`(lease_expires_at IS NULL OR lease_expires_at <= now())`;

export const OPERATION_COLUMNS = Prisma.sql`id, kind, status, attempts, last_error AS "lastError",
  completed_at AS "completedAt"`;

/** The columns of a `WakeableOperation` that an `OperationState` lacks. */
export const WAKE_UP_COLUMNS = Prisma.sql`environment_id AS "environmentId", run, run_attempts AS "runAttempts"`;

export const WAKEABLE_COLUMNS = Prisma.sql`id, kind, ${WAKE_UP_COLUMNS}`;
