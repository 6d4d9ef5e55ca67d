import { setTimeout as delay } from 'node:timers/promises';
import type { ApiAnswer, ApiRequest } from './apps/api.js';
import type { EndpointAction } from './plan.js';

/**
 * What a customer does with an endpoint.
 * @param insist repeats a request until it is answered.
 */
export async function actOnEndpoint(
  action: EndpointAction,
  endpointId: string,
  insist: (request: Omit<ApiRequest, 'caller'>) => Promise<ApiAnswer | null>,
): Promise<void> {
  const params = { endpointId };
  if (action.do === 'pause') {
    await insist({ operationId: 'updateWebhook', params, body: { enabled: false } });
    await delay(action.forMs);
    await insist({ operationId: 'updateWebhook', params, body: { enabled: true } });
  } else if (action.do === 'recover') {
    const since = new Date(Date.now() - 3_600_000).toISOString();
    await insist({ operationId: 'createRecovery', params, body: { since, includePending: true, dryRun: false } });
  } else {
    const operationId = action.do === 'rotate' ? 'rotateWebhookSecret' : 'deleteWebhook';
    await insist({ operationId, params });
  }
}
