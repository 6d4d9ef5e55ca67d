import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { stopAtEnd } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { WebSocketServer } from 'ws';
import { deploymentOf } from './deployment.js';

const ALL = ['rooms:create', 'rooms:read', 'rooms:end', 'tokens:create', 'participants:read', 'participants:remove'];

/** A service that knows two environments: one of the keys `a` and `a2`, and one of `b`. */
async function startService({ hasGateway = true } = {}): Promise<string> {
  const answer: RequestListener = ({ url, headers }, response) => {
    const environmentId = /^Bearer ([ab])/.exec(headers.authorization ?? '')?.[1];
    const status = url !== '/v1/' ? 404 : environmentId === undefined ? 401 : 200;
    const scopes = headers.authorization === 'Bearer b-reads' ? ['rooms:read'] : ALL;
    response.writeHead(status).end(JSON.stringify({ projectId: 'proj_1', environmentId, scopes }));
  };
  const server = createServer(answer);
  if (hasGateway) new WebSocketServer({ server, path: '/v1/signaling' });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stopAtEnd(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const ask = (baseUrl: string, keys: string[], signalingUrl?: string) =>
  deploymentOf({ baseUrl, keys, signalingUrl, receiverUrl: undefined });

test('a deployment tells whose its keys are, and where participants join', async () => {
  const baseUrl = await startService();
  const { tenants, ...urls } = await ask(`${baseUrl}/v1`, ['a', 'b']);
  expect(urls).toEqual({ baseUrl, signalingUrl: `${baseUrl.replace('http', 'ws')}/v1/signaling` });
  expect(tenants.map(({ name, environmentId }) => `${name} ${environmentId}`)).toEqual(['a a', 'b b']);
});

test('a wrong key, a wrong address and a missing gateway are named before the load begins', async () => {
  const baseUrl = await startService();
  await expect(ask(baseUrl, ['a', 'x'])).rejects.toThrow(`${baseUrl} does not accept key 2: it answered 401`);
  await expect(ask(baseUrl, ['a', 'b', 'a2'])).rejects.toThrow('key 3 is of the same environment as another --key');
  await expect(ask(`${baseUrl}/calls`, ['a'])).rejects.toThrow('is not the address of an API: GET /v1/ answered 404');
  await expect(ask(baseUrl, ['b-reads'])).rejects.toThrow(
    'key 1 lacks the scopes rooms:create, rooms:end, tokens:create',
  );
  const gateway = 'ws://127.0.0.1:1/v1/signaling';
  await expect(ask(baseUrl, ['a'], gateway)).rejects.toThrow(`no gateway at ${gateway}, which --signaling-url changes`);
  const alone = await startService({ hasGateway: false });
  await expect(ask(alone, ['a'])).rejects.toThrow(
    '/v1/signaling, which --signaling-url changes: Unexpected server response',
  );
});
