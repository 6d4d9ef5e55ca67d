import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  createTestDatabase,
  gatewayUrlOf,
  repositoryRoot,
  spawnApp,
  startTestNginx,
  startTestRedis,
} from '@callplane/testing';
import { SUBPROTOCOL } from '@callplane/protocol';
import { expect, test } from '@jest/globals';
import { WebSocket } from 'ws';
import { parse } from 'yaml';

/** A gateway behind nginx, with this value of ALLOWED_ORIGINS in .env and the setting of docker-compose.yml. */
async function startGateway(allowedOrigins: string): Promise<string> {
  const compose = parse(readFileSync(join(repositoryRoot, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
    services: Record<string, { environment: Record<string, string> }>;
  };
  const setting = compose.services['signaling']!.environment['ALLOWED_ORIGINS']!;
  const [{ url }, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  const gateway = await spawnApp({
    name: 'signaling',
    env: {
      DATABASE_URL: gatewayUrlOf(url),
      REDIS_URL: redis.url,
      TRUST_PROXY: '127.0.0.1',
      ALLOWED_ORIGINS: setting.replace('${ALLOWED_ORIGINS:-}', allowedOrigins),
    },
  });
  const nginx = await startTestNginx({ api: [], signaling: [Number(new URL(gateway.url).port)] });
  return `${nginx.url.replace('http', 'ws')}/v1/signaling`;
}

/** The HTTP status of an upgrade request. */
function statusFor(url: string, origin?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, SUBPROTOCOL, origin === undefined ? {} : { origin });
    socket.on('open', () => {
      resolve(101);
      socket.terminate();
    });
    socket.on('unexpected-response', (request, response) => {
      resolve(response.statusCode ?? 0);
      request.destroy();
    });
    socket.on('error', reject);
  });
}

test('with ALLOWED_ORIGINS in .env, pages of other origins get 403 at the upgrade', async () => {
  const url = await startGateway('https://app.example.com,https://other.example.com');
  expect(await statusFor(url, 'https://app.example.com')).toBe(101);
  expect(await statusFor(url, 'https://other.example.com')).toBe(101);
  expect(await statusFor(url)).toBe(101);
  for (const origin of ['https://evil.example.com', 'http://app.example.com', 'null', 'https://app.example.com.evil']) {
    expect([origin, await statusFor(url, origin)]).toEqual([origin, 403]);
  }
});

test('without ALLOWED_ORIGINS, every page may connect', async () => {
  expect(await statusFor(await startGateway(''), 'https://anywhere.example.com')).toBe(101);
});
