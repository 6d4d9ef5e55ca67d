import { lazy, type ComponentType } from 'react';
import type { IconName } from '../components/icons.js';
import { matchPath, type PathParameters } from '../navigation/match.js';
import type { Scope } from '../session/session.js';

export type PageComponent = ComponentType<{ parameters: PathParameters }>;
interface Route {
  path: string;
  page: PageComponent;
}

/** Each page is a file of its own, which the browser loads when the page opens. */
export const ROUTES: readonly Route[] = [
  { path: '/', page: lazy(() => import('../pages/overview/overview.page.js')) },
  { path: '/rooms', page: lazy(() => import('../pages/rooms/rooms.page.js')) },
  { path: '/webhooks', page: lazy(() => import('../pages/webhooks/endpoints.page.js')) },
  { path: '/webhooks/:endpointId', page: lazy(() => import('../pages/webhooks/endpoint.page.js')) },
  {
    path: '/webhooks/:endpointId/deliveries/:deliveryId',
    page: lazy(() => import('../pages/webhooks/delivery.page.js')),
  },
  { path: '/deliveries', page: lazy(() => import('../pages/webhooks/deliveries.page.js')) },
  { path: '/rooms/:roomId', page: lazy(() => import('../pages/room/room.page.js')) },
  { path: '/developers', page: lazy(() => import('../pages/developers/developers.page.js')) },
  { path: '/call', page: lazy(() => import('../pages/call/call.page.js')) },
];

/** The entries of the navigation. One without the scope of its page is left out. */
export const NAVIGATION: readonly { to: string; label: string; icon: IconName; scope?: Scope }[] = [
  { to: '/', label: 'Overview', icon: 'overview' },
  { to: '/rooms', label: 'Rooms', icon: 'rooms', scope: 'rooms:read' },
  { to: '/webhooks', label: 'Webhooks', icon: 'webhooks', scope: 'webhooks:read' },
  { to: '/deliveries', label: 'Deliveries', icon: 'deliveries', scope: 'webhooks:read' },
  { to: '/developers', label: 'Developers', icon: 'developers' },
];

export function routeOf(path: string): { page: PageComponent; parameters: PathParameters; path: string } | undefined {
  for (const { path: pattern, page } of ROUTES) {
    const parameters = matchPath(pattern, path);
    if (parameters !== undefined) return { page, parameters, path: pattern };
  }
  return undefined;
}
