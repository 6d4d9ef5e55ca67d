import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket, isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import express, { type Express, type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { LRUCache } from 'lru-cache';

export interface DemoSettings extends PagesSettings {
  /** 0 picks a free port. */
  port: number;
  host: string;
  /** Origin of a gateway, to which the page's WebSockets go. */
  gatewayUrl: string;
  /** Host names, besides loopback, under which browsers may open the page, e.g. behind a TLS proxy. */
  hosts: readonly string[];
}

export interface Demo {
  url: string;
  close(): Promise<void>;
}

/**
 * Serves the page for calls under `/demo`, with a small backend, because a browser must never hold an API key. Every
 * client that can reach it may join any of its rooms. The page's WebSockets pass through to the gateway, so that one TLS
 * proxy in front is enough.
 */
export async function startDemo(settings: DemoSettings): Promise<Demo> {
  const door = createDemoDoor({ listensOn: settings.host, names: settings.hosts });
  const server = createServer(demoPages(settings, door));
  const sockets = new Set<Duplex>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('upgrade', (request, socket, head) => {
    if (door.knowsHost(request)) passOn(request, socket, head, new URL(settings.gatewayUrl));
    else socket.destroy();
  });
  await once(server.listen(settings.port, settings.host), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Repeats the request of an upgrade at the gateway, and passes on all that follows. */
function passOn(request: IncomingMessage, socket: Duplex, head: Buffer, gatewayUrl: URL): void {
  const { method = 'GET', rawHeaders, url = '/' } = request;
  const headers = rawHeaders.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('');
  const gateway: Socket = connect(Number(gatewayUrl.port), gatewayUrl.hostname.replaceAll(/[[\]]/g, ''), () => {
    gateway.write(`${method} ${url} HTTP/1.1\r\n${headers}\r\n`);
    gateway.write(head);
    socket.pipe(gateway).pipe(socket);
  });
  socket.on('error', () => gateway.destroy()).on('close', () => gateway.destroy());
  gateway.on('error', () => socket.destroy()).on('close', () => socket.destroy());
}

const BODY_BYTES_MAX = 4096;
const API_DEADLINE_MS = 5000;
const ROOMS_MAX = 1000;
const EVERYTHING = [
  'room:join',
  'audio:publish',
  'video:publish',
  'screen:publish',
  'messages:send',
  'metadata:update',
];

interface PagesSettings {
  dir: string;
  apiUrl: string;
  apiKey: string;
  onError: (message: string, error: unknown) => void;
}

function demoPages(settings: PagesSettings, door: DemoDoor): Express {
  const join = demoBackend(settings);
  const fail = (response: Response, status: number, code: string, message: string) =>
    // A refused request may have a body that nobody has read.
    response.status(status).set('connection', 'close').json({ error: { code, message } });
  const refuseNames = (response: Response) =>
    fail(response, 400, 'VALIDATION_FAILED', 'room and name must have 1 to 60 characters');
  const pages = express();
  pages.use((request, response, next) => {
    if (door.knowsHost(request)) next();
    else
      fail(
        response,
        403,
        'ORIGIN_NOT_ALLOWED',
        'The demo is not served under this host name. Add the name to DEMO_HOSTS.',
      );
  });
  const guard: RequestHandler = (request, response, next) => {
    if (request.method !== 'POST') fail(response, 405, 'METHOD_NOT_ALLOWED', 'POST only');
    else if (!door.isSameOrigin(request))
      fail(response, 403, 'ORIGIN_NOT_ALLOWED', 'Only the demo page may request a token.');
    else if (!request.is('json'))
      fail(response, 415, 'UNSUPPORTED_MEDIA_TYPE', 'Send the body as "Content-Type: application/json".');
    else next();
  };
  pages.use('/demo/api/join', guard, express.json({ limit: BODY_BYTES_MAX }), async (request, response) => {
    const { room, name } = request.body as Record<string, unknown>;
    if (!isName(room) || !isName(name)) {
      refuseNames(response);
      return;
    }
    try {
      response.json(await join(room, name));
    } catch (error) {
      settings.onError('demo token request failed', error);
      fail(response, 502, 'UNAVAILABLE', 'The API did not answer.');
    }
  });
  pages.use(
    '/demo',
    express.static(settings.dir, {
      cacheControl: false,
      setHeaders: (file) => void file.set('cache-control', 'no-cache'),
    }),
  );
  pages.use((_request, response) => fail(response, 404, 'ROUTE_NOT_FOUND', 'File not found.'));
  // A body that is no JSON, or too long. Express knows the handler of errors by its four parameters.
  pages.use((_error: unknown, _request: Request, response: Response, _next: NextFunction) => refuseNames(response));
  return pages;
}

function demoBackend(api: PagesSettings) {
  /** Room ids by room name. An ended room is replaced by a new one. */
  const rooms = new LRUCache<string, Promise<string>>({ max: ROOMS_MAX });
  const call = async (path: string, body: object): Promise<{ status: number; body: Record<string, unknown> }> => {
    const response = await fetch(new URL(path, api.apiUrl), {
      method: 'POST',
      headers: { authorization: `Bearer ${api.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(API_DEADLINE_MS),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const roomNamed = (name: string): Promise<string> => {
    let room = rooms.get(name);
    if (room === undefined) {
      room = call('/v1/rooms', { name }).then(({ status, body }) => {
        if (status !== 201) throw new Error(`creating a room failed: the API answered ${status}`);
        return String(body['id']);
      });
      room.catch(() => rooms.delete(name));
      rooms.set(name, room);
    }
    return room;
  };
  return async (room: string, name: string): Promise<object> => {
    for (let tries = 1; ; tries++) {
      const roomId = await roomNamed(room.trim());
      const issued = await call(`/v1/rooms/${roomId}/tokens`, { participantName: name, permissions: EVERYTHING });
      if (issued.status === 201) {
        const { token, participantId } = issued.body;
        return { token, roomId, participantId };
      }
      // The room has ended, or the database was replaced: the name gets a new room.
      rooms.delete(room.trim());
      if (tries === 2) throw new Error(`issuing a token failed: the API answered ${issued.status}`);
    }
  };
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= 60;
}

/** Guards the demo page's backend, which issues tokens to callers without an API key. */
export interface DemoDoor {
  /** Whether the `Host` header is a name under which the gateway serves the demo. */
  knowsHost(request: IncomingMessage): boolean;
  /** Whether the request comes from the demo's own page or from a client other than a browser. */
  isSameOrigin(request: IncomingMessage): boolean;
}

/**
 * The `Host` must be a known name, against DNS rebinding: another site can point its own name at this machine, and
 * browsers then treat that site's pages as same-origin with the demo. The `Origin` must be the demo's, against CSRF:
 * pages of other sites can send requests here, too.
 * @param listensOn the gateway's `HOST`. If it is not a loopback address, every IP address is accepted as `Host`: DNS
 *   rebinding needs a name, so an IP address is safe.
 */
export function createDemoDoor({ listensOn, names }: { listensOn: string; names: readonly string[] }): DemoDoor {
  const known = new Set(names.map((name) => name.toLowerCase()));
  const servesOthers = !isLoopback(listensOn.toLowerCase());
  return {
    knowsHost(request) {
      const name = hostName(request.headers.host ?? '');
      return isLoopback(name) || known.has(name) || name === listensOn || (servesOthers && isIP(name) !== 0);
    },
    isSameOrigin({ headers }) {
      // Browsers mark requests of other sites' pages with this header even if they send no Origin.
      const site = headers['sec-fetch-site'];
      if (site !== undefined && site !== 'same-origin') return false;
      if (headers.origin === undefined) return true;
      const origin = /^https?:\/\/(.+)$/.exec(headers.origin.toLowerCase())?.[1];
      return origin !== undefined && origin === headers.host?.toLowerCase();
    },
  };
}

/** The name or address in a `Host` header, in lower case, without port and brackets. */
function hostName(host: string): string {
  const [, address, name] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(host.toLowerCase()) ?? [];
  return address ?? name ?? '';
}

function isLoopback(name: string): boolean {
  return (
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === '::1' ||
    (isIP(name) === 4 && name.startsWith('127.'))
  );
}
