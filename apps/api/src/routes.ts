import { contextRoutes } from './context/context.routes.js';
import type { Deps } from './deps.js';
import { eventRoutes } from './events/events.routes.js';
import type { Route } from './http/route.js';
import { participantRoutes } from './participants/participants.routes.js';
import { roomRoutes } from './rooms/rooms.routes.js';
import { turnRoutes } from './turn/turn.routes.js';
import { deliveryRoutes } from './webhooks/deliveries.routes.js';
import { endpointRoutes } from './webhooks/endpoints.routes.js';
import { recoveryRoutes } from './webhooks/recoveries.routes.js';
import { signatureContractRoutes } from './webhooks/signature-contract.routes.js';

/** Everything under `/v1`, in the order of the documentation. */
export function apiRoutes(deps: Deps): Route[] {
  return [
    ...contextRoutes(),
    ...roomRoutes(deps),
    ...participantRoutes(deps),
    ...turnRoutes(deps),
    // Its path must be known before that of an endpoint, which has any id.
    ...signatureContractRoutes(),
    ...endpointRoutes(deps),
    ...deliveryRoutes(deps),
    ...recoveryRoutes(deps),
    ...eventRoutes(deps),
  ];
}
