import { consoleRoutes } from './console/console.routes.js';
import type { Deps } from './deps.js';
import { eventRoutes } from './events/events.routes.js';
import { tagged, type Route } from './http/route.js';
import { withTenantQuery } from './http/schemas.js';
import { overviewRoutes } from './overview/overview.routes.js';
import { moderationRoutes } from './participants/moderation.routes.js';
import { moveRoutes } from './participants/moves.routes.js';
import { participantRoutes } from './participants/participants.routes.js';
import { requestRoutes } from './participants/requests.routes.js';
import { tokenRoutes } from './participants/tokens.routes.js';
import { recordingRoutes } from './recordings/recordings.routes.js';
import { messageRoutes } from './rooms/messages.routes.js';
import { roomMediaRoutes } from './rooms/room-media.routes.js';
import { roomRoutes } from './rooms/rooms.routes.js';
import { sessionRoutes } from './sessions/sessions.routes.js';
import { streamRoutes } from './stream/stream.routes.js';
import { turnRoutes } from './turn/turn.routes.js';
import { usageRoutes } from './usage/usage.routes.js';
import { deliveryRoutes } from './webhooks/deliveries.routes.js';
import { endpointStatsRoutes } from './webhooks/endpoint-stats.routes.js';
import { endpointRoutes } from './webhooks/endpoints.routes.js';
import { recoveryRoutes } from './webhooks/recoveries.routes.js';

/** The routes under `/v1` behind the rate limits, in the order of the documentation. */
export function apiRoutes(deps: Deps): Route[] {
  return [
    ...consoleRoutes(deps),
    ...roomRoutes(deps),
    ...roomMediaRoutes(deps),
    ...messageRoutes(deps),
    ...tokenRoutes(deps),
    ...participantRoutes(deps),
    ...moderationRoutes(deps),
    ...moveRoutes(deps),
    ...requestRoutes(deps),
    ...sessionRoutes(deps),
    ...recordingRoutes(deps),
    ...overviewRoutes(deps),
    ...usageRoutes(deps),
    ...turnRoutes(deps),
    ...tagged(
      'Webhooks',
      withTenantQuery([
        ...endpointRoutes(deps),
        ...endpointStatsRoutes(deps),
        ...deliveryRoutes(deps),
        ...recoveryRoutes(deps),
      ]),
    ),
    ...tagged('Events', withTenantQuery(eventRoutes(deps))),
    ...streamRoutes(deps),
  ];
}
