import { createReadStream, realpathSync, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join, sep } from 'node:path';
import type { Logger } from '@callplane/runtime';
import type { SignalingConfig } from '../config.js';
import type { Pages } from '../server.js';

type DemoConfig = Pick<SignalingConfig, 'DEMO_API_KEY' | 'DEMO_API_URL' | 'DEMO_DIR'>;

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
const EVERYTHING = [
  'room:join',
  'audio:publish',
  'video:publish',
  'screen:publish',
  'messages:send',
  'metadata:update',
];

/**
 * For development only: the demo page under `/demo`, and the tiny backend that it needs, because a browser must never
 * hold an API key. Anybody who reaches this may join any demo room.
 */
export function demoPages(config: DemoConfig, logger: Logger): Pages {
  const { DEMO_DIR: dir, DEMO_API_URL: apiUrl, DEMO_API_KEY: apiKey } = config;
  if (dir === undefined) return () => false;
  const backend = apiUrl === undefined || apiKey === undefined ? null : demoBackend({ apiUrl, apiKey });
  return (request, response, path) => {
    if (path === '/demo') {
      response.writeHead(302, { location: '/demo/' }).end();
      return true;
    }
    if (!path.startsWith('/demo/')) return false;
    if (path === '/demo/api/join') {
      if (request.method !== 'POST') json(response, 405, { error: 'POST only' });
      else if (backend === null) json(response, 503, { error: 'DEMO_API_URL and DEMO_API_KEY are not set' });
      else {
        backend(request).then(
          ({ status, body }) => json(response, status, body),
          (error: unknown) => {
            logger.warn('demo backend failed', { error });
            json(response, 502, { error: 'The API did not answer.' });
          },
        );
      }
      return true;
    }
    serveFile(dir, path.slice('/demo/'.length), response);
    return true;
  };
}

function demoBackend(api: { apiUrl: string; apiKey: string }) {
  /** Rooms by their name; one that has ended is made anew. */
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
        if (status !== 201) throw new Error(`the API answered ${status} to a new room`);
        return String(body['id']);
      });
      room.catch(() => rooms.delete(name));
      rooms.set(name, room);
    }
    return room;
  };
  return async (request: IncomingMessage): Promise<{ status: number; body: object }> => {
    const { room, name } = await readBody(request);
    if (!isName(room) || !isName(name)) return { status: 400, body: { error: 'room and name: 1 to 60 characters' } };
    for (let tries = 1; ; tries++) {
      const roomId = await roomNamed(room.trim());
      const issued = await call(`/v1/rooms/${roomId}/tokens`, { participantName: name, permissions: EVERYTHING });
      if (issued.status === 201) {
        const { token, participantId } = issued.body;
        return { status: 200, body: { token, roomId, participantId } };
      }
      // It has ended, or the database is another one: the name gets a new room.
      rooms.delete(room.trim());
      if (tries === 2) throw new Error(`the API answered ${issued.status} to a new token`);
    }
  };
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

function serveFile(dir: string, path: string, response: ServerResponse): void {
  try {
    const root = realpathSync(dir);
    const file = realpathSync(join(root, decodeURIComponent(path === '' ? 'index.html' : path)));
    if (!file.startsWith(root + sep) || !statSync(file).isFile()) throw new Error('not a file of the demo');
    response.writeHead(200, {
      'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
      'cache-control': 'no-cache',
    });
    createReadStream(file)
      .on('error', () => response.destroy())
      .pipe(response);
  } catch {
    json(response, 404, { error: 'There is no such file.' });
  }
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
