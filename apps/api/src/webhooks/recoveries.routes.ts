import {
  type ErrorDetail,
  formatTimestamp,
  newId,
  PublicError,
  RECOVERIES_PENDING_MAX,
  RECOVERY_STATUSES,
  type Tenant,
} from '@callplane/core';
import {
  cancelRecovery,
  findRecovery,
  insertRecovery,
  listRecoveries,
  type RecoveryRow,
  webhookEndpointExisted,
} from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { defineList, idOf } from '../http/cursor.js';
import { defineRoute, type Route } from '../http/route.js';
import {
  checkTenant,
  oneOf,
  orNull,
  page,
  pageById,
  pageQuery,
  pathId,
  strictObject,
  TenantQuery,
  timeFailures,
  timestamp,
} from '../http/schemas.js';
import { EndpointPath } from './endpoints.schemas.js';

const RecoverySchema = Type.Object(
  {
    id: Type.String({ description: 'Recovery identifier, `rcv_…`.' }),
    endpointId: Type.String(),
    since: timestamp('Start of the window: deliveries created from this time on.'),
    until: timestamp('End of the window: deliveries created up to this time.'),
    dryRun: Type.Boolean({ description: 'Whether the recovery only counts and changes nothing.' }),
    includePending: Type.Boolean({ description: 'Whether pending deliveries are brought forward, too.' }),
    status: oneOf(RECOVERY_STATUSES),
    matched: Type.Integer({ description: 'Failed and pending deliveries found in the window so far.' }),
    replayed: Type.Integer({ description: 'Failed deliveries that were replayed. 0 with `dryRun`.' }),
    woken: Type.Integer({
      description: 'Pending deliveries whose next attempt was brought forward to now. 0 with `dryRun`.',
    }),
    skipped: Type.Integer({
      description:
        'Failed deliveries that were not replayed: they have 100 replays, their event was erased, or another client ' +
        'replayed them meanwhile.',
    }),
    createdAt: timestamp('When the recovery was created.'),
    completedAt: orNull(timestamp('When the recovery was completed or cancelled.')),
  },
  { title: 'WebhookRecovery', additionalProperties: false },
);

const CreateRecoveryBody = strictObject(
  {
    since: timestamp('Start of the window: deliveries created from this time on. ISO 8601 with a time zone.'),
    until: Type.Optional(timestamp('End of the window. By default, and at the latest, the current time.')),
    dryRun: Type.Optional(
      Type.Boolean({ default: false, description: 'Counts the matching deliveries and changes nothing.' }),
    ),
    includePending: Type.Optional(
      Type.Boolean({
        default: true,
        description:
          'Brings pending deliveries of the window forward, too: same run, same replay count. With false, only failed ' +
          'deliveries are replayed.',
      }),
    ),
  },
  { title: 'CreateRecovery' },
);

const RecoveryPath = Type.Object({
  ...EndpointPath.properties,
  recoveryId: pathId('Recovery of this endpoint.'),
});

const ListRecoveriesQuery = Type.Object({ ...TenantQuery.properties, ...pageQuery() });
const RECOVERY_LIST = defineList('recoveries', { id: idOf('rcv') });
const RecoveryPage = page('WebhookRecoveryPage', RecoverySchema);

const PATH = '/v1/webhooks/{endpointId}/recoveries';

export function recoveryRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'post',
      path: PATH,
      operationId: 'createRecovery',
      summary: 'Send all unsuccessful deliveries of a time window now',
      description:
        'Call it when a receiver works again. A worker replays the failed deliveries and brings the pending ones ' +
        'forward, oldest first and at most 100 a second; poll the recovery for its progress. It skips failed deliveries ' +
        'with 100 replays and those of erased events. A delivery that is being sent is included if that attempt fails. ' +
        'The recovery pauses while the endpoint is disabled. With `dryRun`, it only counts.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: EndpointPath,
      query: TenantQuery,
      body: CreateRecoveryBody,
      validate: (parts) => [...checkTenant(parts), ...checkWindow(deps, parts.body)],
      responses: { 202: { description: 'The recovery.', schema: RecoverySchema } },
      errors: ['WEBHOOK_NOT_FOUND'],
      async handle({ caller, params, body }) {
        const now = deps.clock.now();
        const { dryRun = false, includePending = true } = body;
        const { endpointId } = params;
        const begun = {
          id: newId('recovery'),
          endpointId,
          ...windowOf(body, now),
          dryRun,
          includePending,
          createdAt: now,
        };
        const recovery = await deps.database.prisma.$transaction((tx) => insertRecovery(tx, caller, begun));
        if (recovery === 'not_found') throw new PublicError('WEBHOOK_NOT_FOUND');
        if (recovery === 'limit') throw tooManyRecoveries();
        return { status: 202, body: presentRecovery(recovery) };
      },
    }),
    defineRoute({
      method: 'get',
      path: PATH,
      operationId: 'listRecoveries',
      summary: 'List the recoveries of an endpoint, newest first',
      description: 'Also works with the id of a removed endpoint.',
      tag: 'Webhooks',
      scope: 'webhooks:read',
      params: EndpointPath,
      query: ListRecoveriesQuery,
      list: RECOVERY_LIST,
      validate: checkTenant,
      responses: { 200: { description: 'One page of recoveries.', schema: RecoveryPage } },
      errors: ['WEBHOOK_NOT_FOUND'],
      async handle({ caller, params, query, cursor }) {
        const { prisma } = deps.database;
        const { endpointId } = params;
        const { rows, nextCursor } = await pageById(cursor, query, (part) =>
          listRecoveries(prisma, caller, endpointId, part),
        );
        if (rows.length === 0 && !(await webhookEndpointExisted(prisma, caller, endpointId))) {
          throw new PublicError('WEBHOOK_NOT_FOUND');
        }
        return { status: 200, body: { data: rows.map(presentRecovery), nextCursor } };
      },
    }),
    defineRoute({
      method: 'get',
      path: `${PATH}/{recoveryId}`,
      operationId: 'readRecovery',
      summary: 'Read the progress of a recovery',
      tag: 'Webhooks',
      scope: 'webhooks:read',
      params: RecoveryPath,
      query: TenantQuery,
      validate: checkTenant,
      responses: { 200: { description: 'The recovery.', schema: RecoverySchema } },
      errors: ['WEBHOOK_NOT_FOUND', 'RECOVERY_NOT_FOUND'],
      async handle({ caller, params }) {
        const { endpointId, recoveryId } = params;
        const recovery = await findRecovery(deps.database.prisma, caller, endpointId, recoveryId);
        return { status: 200, body: presentRecovery(recovery ?? (await notFound(deps, caller, endpointId))) };
      },
    }),
    defineRoute({
      method: 'delete',
      path: `${PATH}/{recoveryId}`,
      operationId: 'cancelRecovery',
      summary: 'Cancel a recovery',
      description:
        'Deliveries that the recovery has replayed or brought forward continue. Cancelling a complete recovery changes nothing.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: RecoveryPath,
      query: TenantQuery,
      validate: checkTenant,
      responses: { 204: { description: 'The recovery changes no more deliveries.', schema: null } },
      errors: ['WEBHOOK_NOT_FOUND', 'RECOVERY_NOT_FOUND'],
      async handle({ caller, params }) {
        const { endpointId, recoveryId } = params;
        const { prisma } = deps.database;
        const isFound = await cancelRecovery(prisma, caller, endpointId, recoveryId, deps.clock.now());
        if (!isFound) await notFound(deps, caller, endpointId);
        return { status: 204 };
      },
    }),
  ];
}

/** A recovery in the form that the API returns. */
function presentRecovery(recovery: RecoveryRow) {
  return {
    id: recovery.id,
    endpointId: recovery.endpointId,
    since: formatTimestamp(recovery.since),
    until: formatTimestamp(recovery.until),
    dryRun: recovery.dryRun,
    includePending: recovery.includePending,
    status: recovery.status,
    matched: recovery.matched,
    replayed: recovery.replayed,
    woken: recovery.woken,
    skipped: recovery.skipped,
    createdAt: formatTimestamp(recovery.createdAt),
    completedAt: recovery.completedAt === null ? null : formatTimestamp(recovery.completedAt),
  };
}

function tooManyRecoveries(): PublicError {
  return new PublicError('RATE_LIMITED', {
    message: `${RECOVERIES_PENDING_MAX} recoveries of this endpoint are pending. Cancel one, or try again later.`,
    headers: { 'retry-after': '10' },
  });
}

interface RecoveryInput {
  since: string;
  until?: string;
  dryRun?: boolean;
  includePending?: boolean;
}

/**
 * Checks that the times of a window exist and that the window is not empty. A schema cannot express this.
 * @param body not validated yet. The schema reports values that are not strings.
 */
function checkWindow(deps: Pick<Deps, 'clock'>, body: { since?: unknown; until?: unknown }): ErrorDetail[] {
  const details = timeFailures('body', body);
  if (details.length > 0 || typeof body.since !== 'string') return details;
  if (body.until !== undefined && typeof body.until !== 'string') return details;
  const { since, until } = windowOf(body as RecoveryInput, deps.clock.now());
  return since < until ? [] : [{ path: 'body.since', message: 'must be before `until` and in the past' }];
}

async function notFound(deps: Pick<Deps, 'database'>, tenant: Tenant, endpointId: string): Promise<never> {
  const existed = await webhookEndpointExisted(deps.database.prisma, tenant, endpointId);
  throw new PublicError(existed ? 'RECOVERY_NOT_FOUND' : 'WEBHOOK_NOT_FOUND');
}

/** Ends the window now at the latest: a delivery cannot have failed in the future. */
function windowOf(input: RecoveryInput, now: Date): { since: Date; until: Date } {
  const until = input.until === undefined ? now : new Date(input.until);
  return { since: new Date(input.since), until: until < now ? until : now };
}
