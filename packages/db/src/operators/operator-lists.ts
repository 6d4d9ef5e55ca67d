/** Queries of `rtc` for operators: across tenants, and therefore by bare id. Request handlers must never call them. */
import type { OperationError, OperationKind, OperationStatus, Tenant } from '@callplane/core';
import type { TypedSql } from '../client/database.js';
import { Prisma } from '../generated/client.js';
import { conditions, type ListFilter } from './operator-filters.js';

export interface OperationListing {
  id: string;
  kind: OperationKind;
  status: OperationStatus;
  environmentId: string;
  roomId: string;
  participantId: string | null;
  run: number;
  attempts: number;
  /** Due time of the next attempt; for a settled operation, of the last one. */
  dueAt: Date;
  /** Whether a worker currently holds it. */
  held: boolean;
  lastError: OperationError | null;
  createdAt: Date;
  completedAt: Date | null;
}

const OPERATION_LISTING = Prisma.sql`id, kind, status, environment_id AS "environmentId", room_id AS "roomId",
  participant_id AS "participantId", run, attempts, due_at AS "dueAt", coalesce(lease_expires_at > now(), false) AS held,
  last_error AS "lastError", created_at AS "createdAt", completed_at AS "completedAt"`;

/** Newest first. */
export function listAllOperations(
  db: TypedSql,
  filter: ListFilter & { status: OperationStatus | null; kind: OperationKind | null },
): PromiseLike<OperationListing[]> {
  return db.$queryRaw<OperationListing[]>`
    SELECT ${OPERATION_LISTING} FROM runtime_operations
    ${conditions(filter, [
      filter.status === null ? null : Prisma.sql`status = ${filter.status}`,
      filter.kind === null ? null : Prisma.sql`kind = ${filter.kind}`,
    ])}
    ORDER BY id DESC LIMIT ${filter.limit}`;
}

export async function findOperationById(
  db: TypedSql,
  operationId: string,
): Promise<(OperationListing & Tenant) | null> {
  const [row] = await db.$queryRaw<(OperationListing & Tenant)[]>`
    SELECT ${OPERATION_LISTING}, (SELECT project_id FROM environments WHERE environments.id = environment_id) AS "projectId"
    FROM runtime_operations WHERE id = ${operationId}`;
  return row ?? null;
}

/** The tenant of an environment; null if it does not exist. */
export async function tenantOfEnvironment(db: TypedSql, environmentId: string): Promise<Tenant | null> {
  const [tenant] = await db.$queryRaw<Tenant[]>`
    SELECT id AS "environmentId", project_id AS "projectId" FROM environments WHERE id = ${environmentId}`;
  return tenant ?? null;
}
