import { RECOVERY_STATUSES } from '@callplane/core';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { defineList, idOf } from '../http/cursor.js';
import { defineRoute, type Route } from '../http/route.js';
import {
  checkTenant,
  oneOf,
  orNull,
  page,
  pageQuery,
  pathId,
  strictObject,
  TenantQuery,
  timestamp,
} from '../http/schemas.js';
import { EndpointPath } from './endpoints.schemas.js';
import {
  checkWindow,
  createRecovery,
  pageOfRecoveries,
  presentRecovery,
  readRecovery,
  stopRecovery,
} from './recoveries.service.js';

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
        return { status: 202, body: presentRecovery(await createRecovery(deps, caller, params.endpointId, body)) };
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
        const { rows, nextCursor } = await pageOfRecoveries(deps, caller, params.endpointId, query, cursor);
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
        return { status: 200, body: presentRecovery(await readRecovery(deps, caller, params)) };
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
        await stopRecovery(deps, caller, params);
        return { status: 204 };
      },
    }),
  ];
}
