import { lazy, type ComponentType } from 'react';
import type { IconName } from '../components/icons.js';
import { matchPath, type PathParameters } from '../navigation/match.js';
import type { Scope } from '../session/session.js';

export type PageComponent = ComponentType<{ parameters: PathParameters }>;
interface Route {
  path: string;
  page: PageComponent;
}

/** The files of pages that a browser asks for before it can show them. */
const files = new Map<string, () => Promise<unknown>>();

function pageOf(path: string, load: () => Promise<{ default: PageComponent }>): Route {
  files.set(path, load);
  return { path, page: lazy(load) };
}

/** Begins to load the file of a page, while the session is still being read. */
export function preloadPage(path: string): void {
  const route = routeOf(path);
  // The page itself reports a file that cannot be loaded.
  if (route !== undefined)
    void files
      .get(route.path)?.()
      .catch(() => undefined);
}

/** Each page is a file of its own, which the browser loads when the page opens. */
const ROUTES: readonly Route[] = [
  pageOf('/', () => import('../pages/overview/overview.page.js')),
  pageOf('/rooms', () => import('../pages/rooms/rooms.page.js')),
  pageOf('/webhooks', () => import('../pages/webhooks/endpoints.page.js')),
  pageOf('/webhooks/:endpointId', () => import('../pages/webhooks/endpoint.page.js')),
  pageOf('/webhooks/:endpointId/deliveries/:deliveryId', () => import('../pages/webhooks/delivery.page.js')),
  pageOf('/deliveries', () => import('../pages/webhooks/deliveries.page.js')),
  pageOf('/rooms/:roomId', () => import('../pages/room/room.page.js')),
  pageOf('/developers', () => import('../pages/developers/developers.page.js')),
  pageOf('/call', () => import('../pages/call/call.page.js')),
];

/** The entries of the navigation. One without the scope of its page is left out. */
export const NAVIGATION: readonly { to: string; label: string; icon: IconName; scope?: Scope }[] = [
  { to: '/', label: 'Overview', icon: 'overview' },
  { to: '/rooms', label: 'Rooms', icon: 'rooms', scope: 'rooms:read' },
  { to: '/webhooks', label: 'Webhooks', icon: 'webhooks', scope: 'webhooks:read' },
  { to: '/deliveries', label: 'Deliveries', icon: 'deliveries', scope: 'webhooks:read' },
  { to: '/developers', label: 'Developers', icon: 'developers' },
];

/** Pages whose way up is another entry than their path says. */
const SECTIONS: Readonly<Record<string, string>> = {
  '/webhooks/:endpointId/deliveries/:deliveryId': '/deliveries',
  '/call': '/developers',
};

/** @returns whether a path belongs to an entry of the navigation */
export function isInSection(path: string, to: string): boolean {
  const section = SECTIONS[routeOf(path)?.path ?? ''];
  if (section !== undefined) return section === to;
  return to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`);
}

export function routeOf(path: string): { page: PageComponent; parameters: PathParameters; path: string } | undefined {
  for (const { path: pattern, page } of ROUTES) {
    const parameters = matchPath(pattern, path);
    if (parameters !== undefined) return { page, parameters, path: pattern };
  }
  return undefined;
}
