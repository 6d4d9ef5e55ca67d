import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { EndpointPath } from './endpoints.schemas.js';
import { presentRecovery } from './recoveries.presenter.js';
import {
  CreateRecoveryBody,
  ListRecoveriesQuery,
  RECOVERY_LIST,
  RecoveryPage,
  RecoveryPath,
  RecoverySchema,
} from './recoveries.schemas.js';
import { createRecovery, checkWindow, pageOfRecoveries, readRecovery, stopRecovery } from './recoveries.service.js';
import { checkTenant, TenantQuery } from './tenant-query.js';

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
