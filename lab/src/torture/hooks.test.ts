import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { stopAtEnd } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { Caller } from './caller.js';
import type { HistoryWriter } from './history-writer.js';
import { Hooks } from './hooks.js';
import { Random } from '../random.js';
import type { RecordingReceiver } from './recording-receiver.js';

test('an endpoint is registered once the service can answer, with one idempotency key for all its requests', async () => {
  const keys: unknown[] = [];
  const server = createServer((request, response) => {
    keys.push(request.headers['idempotency-key']);
    const isReady = keys.length > 1;
    response.writeHead(isReady ? 201 : 503);
    response.end(isReady ? JSON.stringify({ id: `whe_${keys.length}`, signingKeyVersion: 1, signingSecret: 's' }) : '');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stopAtEnd(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const history = { nowMs: 0, write: () => undefined } as unknown as HistoryWriter;
  const caller = new Caller(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, history);
  const receiver = {
    hooks: new Map(),
    urlOf: (path: string) => `http://192.0.2.1${path}`,
  } as unknown as RecordingReceiver;
  const tenant = { name: 'a', projectId: 'proj_a', environmentId: 'env_a', key: 'key' };
  const hooks = new Hooks(caller, receiver, tenant, new Random(1));
  await hooks.register();
  expect(hooks.endpointIds).toEqual(['whe_2', 'whe_3', 'whe_4']);
  expect([keys[0], new Set(keys).size]).toEqual([keys[1], 3]);
  expect(receiver.hooks.get('/a/plain')?.secrets.get('1')).toBe('s');
});
