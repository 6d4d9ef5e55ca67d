import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { EndpointPath } from './endpoints.schemas.js';
import { presentRecovery } from './recoveries.presenter.js';
import { CreateRecoveryBody, RecoveryPath, RecoverySchema } from './recoveries.schemas.js';
import { createRecovery, judgeWindow, readRecovery, stopRecovery } from './recoveries.service.js';
import { judgeTenant, TenantQuery } from './tenant-query.js';

const PATH = '/v1/webhooks/{endpointId}/recoveries';

export function recoveryRoutes(deps: Deps): Route[] {
  return [
    defineRoute({
      method: 'post',
      path: PATH,
      operationId: 'createRecovery',
      summary: 'Send every failed delivery of a window again',
      description:
        'A worker replays them at a measured pace: poll the recovery. It skips what is pending again by then and what was ' +
        'replayed 100 times, and waits while the endpoint is disabled. With `dryRun` it only counts.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: EndpointPath,
      query: TenantQuery,
      body: CreateRecoveryBody,
      judge: (parts) => [...judgeTenant(parts), ...judgeWindow(deps, parts.body)],
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
      summary: 'Read how far a recovery is',
      tag: 'Webhooks',
      scope: 'webhooks:read',
      params: RecoveryPath,
      query: TenantQuery,
      judge: judgeTenant,
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
      description: 'What it has replayed goes on. Cancelling one that is complete changes nothing.',
      tag: 'Webhooks',
      scope: 'webhooks:write',
      params: RecoveryPath,
      query: TenantQuery,
      judge: judgeTenant,
      responses: { 204: { description: 'It replays nothing more.', schema: null } },
      errors: ['WEBHOOK_NOT_FOUND', 'RECOVERY_NOT_FOUND'],
      async handle({ caller, params }) {
        await stopRecovery(deps, caller, params);
        return { status: 204 };
      },
    }),
  ];
}
