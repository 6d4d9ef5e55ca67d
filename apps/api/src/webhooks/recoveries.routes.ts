import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { EndpointPath } from './endpoints.schemas.js';
import { presentRecovery } from './recoveries.presenter.js';
import { CreateRecoveryBody, RecoveryPath, RecoverySchema } from './recoveries.schemas.js';
import { createRecovery, checkWindow, readRecovery, stopRecovery } from './recoveries.service.js';
import { checkTenant, TenantQuery } from './tenant-query.js';

const PATH = '/v1/webhooks/{endpointId}/recoveries';

export function recoveryRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'post',
      path: PATH,
      operationId: 'createRecovery',
      summary: 'Replay all failed deliveries of a time window',
      description:
        'A worker replays the deliveries at a limited rate; poll the recovery for its progress. It skips deliveries ' +
        'that are pending again and deliveries with 100 replays. It pauses while the endpoint is disabled. With ' +
        '`dryRun`, it only counts.',
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
        'Deliveries that the recovery has replayed continue. Cancelling a complete recovery changes nothing.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: RecoveryPath,
      query: TenantQuery,
      validate: checkTenant,
      responses: { 204: { description: 'The recovery starts no more replays.', schema: null } },
      errors: ['WEBHOOK_NOT_FOUND', 'RECOVERY_NOT_FOUND'],
      async handle({ caller, params }) {
        await stopRecovery(deps, caller, params);
        return { status: 204 };
      },
    }),
  ];
}
