import { createReadStream, realpathSync, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join, sep } from 'node:path';
import type { ErrorCode } from '@callplane/core';
import { refuse, requestIdOf, type Logger } from '@callplane/runtime';
import type { SignalingConfig } from '../config.js';
import type { Pages } from '../server.js';
import { createDemoDoor } from './demo-door.js';

type DemoConfig = Pick<SignalingConfig, 'DEMO_API_KEY' | 'DEMO_API_URL' | 'DEMO_DIR' | 'DEMO_HOSTS' | 'HOST'>;

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.map': 'application/json',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
};
const BODY_BYTES_MAX = 4096;
const API_DEADLINE_MS = 5000;
/** Maximum number of rooms that the backend remembers by name. */
const ROOMS_MAX = 1000;
const EVERYTHING = [
  'room:join',
  'audio:publish',
  'video:publish',
  'screen:publish',
  'messages:send',
  'metadata:update',
];

/**
 * Serves the demo page under `/demo`, for development only. The page has a small backend, because a browser must never
 * hold an API key. Every client that can reach the backend may join any demo room.
 */
export function demoPages(config: DemoConfig, logger: Logger): Pages {
  const { DEMO_DIR: dir, DEMO_API_URL: apiUrl, DEMO_API_KEY: apiKey } = config;
  if (dir === undefined) return () => false;
  const door = createDemoDoor({ listensOn: config.HOST, names: config.DEMO_HOSTS });
  const backend = apiUrl === undefined || apiKey === undefined ? null : demoBackend({ apiUrl, apiKey });
  return (request, response, path) => {
    if (path !== '/demo' && !path.startsWith('/demo/')) return false;
    const fail = (status: number, code: ErrorCode, message: string): void =>
      refuse(response, { status, code, message, requestId: requestIdOf(request) });
    if (!door.knowsHost(request)) {
      fail(403, 'ORIGIN_NOT_ALLOWED', 'The demo is not served under this host name. Add the name to DEMO_HOSTS.');
      return true;
    }
    if (path === '/demo') {
      response.writeHead(302, { location: '/demo/' }).end();
      return true;
    }
    if (path === '/demo/api/join') {
      if (request.method !== 'POST') fail(405, 'METHOD_NOT_ALLOWED', 'POST only');
      else if (!door.isSameOrigin(request)) fail(403, 'ORIGIN_NOT_ALLOWED', 'Only the demo page may request a token.');
      else if (!isJson(request))
        fail(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send the body as "Content-Type: application/json".');
      else if (backend === null) fail(503, 'UNAVAILABLE', 'DEMO_API_URL and DEMO_API_KEY are not set');
      else {
        backend(request).then(
          (joined) => {
            if (joined === null) fail(400, 'VALIDATION_FAILED', 'room and name must have 1 to 60 characters');
            else json(response, joined);
          },
          (error: unknown) => {
            logger.warn('demo token request failed', { error });
            fail(502, 'UNAVAILABLE', 'The API did not answer.');
          },
        );
      }
      return true;
    }
    serveFile(dir, path.slice('/demo/'.length), response, () => fail(404, 'ROUTE_NOT_FOUND', 'File not found.'));
    return true;
  };
}

function demoBackend(api: { apiUrl: string; apiKey: string }) {
  /** Room ids by room name. An ended room is replaced by a new one. */
  const rooms = new Map<string, Promise<string>>();
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
      for (const oldest of rooms.keys()) if (rooms.size >= ROOMS_MAX) rooms.delete(oldest);
      rooms.set(name, room);
    }
    return room;
  };
  /** @returns null if `room` or `name` is not a valid name. */
  return async (request: IncomingMessage): Promise<object | null> => {
    const { room, name } = await readBody(request);
    if (!isName(room) || !isName(name)) return null;
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

function isJson({ headers }: IncomingMessage): boolean {
  return /^\s*application\/json\s*(;|$)/i.test(headers['content-type'] ?? '');
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= 60;
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  let text = '';
  for await (const chunk of request) {
    text += String(chunk);
    if (text.length > BODY_BYTES_MAX) return {};
  }
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function serveFile(dir: string, path: string, response: ServerResponse, onMissing: () => void): void {
  try {
    const root = realpathSync(dir);
    const file = realpathSync(join(root, decodeURIComponent(path === '' ? 'index.html' : path)));
    if (!file.startsWith(root + sep) || !statSync(file).isFile())
      throw new Error('the path is outside the demo folder');
    response.writeHead(200, {
      'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
      'cache-control': 'no-cache',
    });
    createReadStream(file)
      .on('error', () => response.destroy())
      .pipe(response);
  } catch {
    onMissing();
  }
}

function json(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
