import { contextRoutes } from './context/context.routes.js';
import type { Deps } from './deps.js';
import type { Route } from './http/route.js';
import { participantRoutes } from './participants/participants.routes.js';
import { roomRoutes } from './rooms/rooms.routes.js';
import { turnRoutes } from './turn/turn.routes.js';
import { signatureContractRoutes } from './webhooks/signature-contract.routes.js';

/** Everything under `/v1`, in the order of the documentation. */
export function apiRoutes(deps: Deps): Route[] {
  return [
    ...contextRoutes(),
    ...roomRoutes(deps),
    ...participantRoutes(deps),
    ...turnRoutes(deps),
    ...signatureContractRoutes(),
  ];
}
