import { lazy, type ComponentType } from 'react';
import type { IconName } from '../components/icons.js';
import { matchPath } from '../navigation/match.js';
import type { Scope } from '../session/session.js';

type PageComponent = ComponentType<{ parameters: Record<string, string> }>;

/** @param section the entry of the navigation that the page belongs to */
function pageOf(path: string, section: string, load: () => Promise<{ default: PageComponent }>) {
  return { path, section, Page: lazy(load) };
}

/** Each page is a file of its own, which the browser loads when the page opens. */
const ROUTES = [
  pageOf('/', '/', () => import('../pages/overview/overview.page.js')),
  pageOf('/rooms', '/rooms', () => import('../pages/rooms/rooms.page.js')),
  pageOf('/rooms/:roomId', '/rooms', () => import('../pages/room/room.page.js')),
  pageOf('/recordings', '/recordings', () => import('../pages/recordings/recordings.page.js')),
  pageOf('/recordings/:recordingId', '/recordings', () => import('../pages/recordings/recording.page.js')),
  pageOf('/webhooks', '/webhooks', () => import('../pages/webhooks/endpoints.page.js')),
  pageOf('/webhooks/:endpointId', '/webhooks', () => import('../pages/webhooks/endpoint.page.js')),
  pageOf(
    '/webhooks/:endpointId/deliveries/:deliveryId',
    '/deliveries',
    () => import('../pages/webhooks/delivery.page.js'),
  ),
  pageOf('/deliveries', '/deliveries', () => import('../pages/webhooks/deliveries.page.js')),
  pageOf('/developers', '/developers', () => import('../pages/developers/developers.page.js')),
  pageOf('/call', '/developers', () => import('../pages/call/call.page.js')),
];

/** The entries of the navigation. One without the scope of its page is left out. */
export const NAVIGATION: readonly { to: string; label: string; icon: IconName; scope?: Scope }[] = [
  { to: '/', label: 'Overview', icon: 'overview' },
  { to: '/rooms', label: 'Rooms', icon: 'camera', scope: 'rooms:read' },
  { to: '/recordings', label: 'Recordings', icon: 'recordings', scope: 'recordings:read' },
  { to: '/webhooks', label: 'Webhooks', icon: 'webhooks', scope: 'webhooks:read' },
  { to: '/deliveries', label: 'Deliveries', icon: 'deliveries', scope: 'webhooks:read' },
  { to: '/developers', label: 'Developers', icon: 'developers' },
];

export function routeOf(path: string) {
  for (const { path: pattern, ...route } of ROUTES) {
    const parameters = matchPath(pattern, path);
    if (parameters !== undefined) return { ...route, parameters };
  }
  return undefined;
}
