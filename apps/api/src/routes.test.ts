import { expect, test } from '@jest/globals';
import { SCOPES } from '@callplane/core';
import type { Deps } from './deps.js';
import type { Route } from './http/route.js';
import { apiRoutes } from './routes.js';

/** An object whose functions, at any depth, fail with this message. */
function failing(message: string): never {
  return new Proxy(() => undefined, {
    get: (_, name) => (name === 'then' ? undefined : failing(message)),
    apply: () => Promise.reject(new Error(message)),
  }) as never;
}

test('every GET reads with the connections for reads, which work while all others wait for a commit', async () => {
  const run = (_environmentId: string, read: () => Promise<unknown>) => read();
  const deps = {
    database: failing('for writes'),
    reads: failing('for reads'),
    statements: failing('for reads'),
    streams: failing('for reads'),
    readLimiter: { list: run, heavy: run },
    clock: { now: () => new Date() },
    console: null,
  } as unknown as Deps;
  const call = {
    caller: { environmentId: 'env_a', projectId: 'proj_a', keyType: 'secret', scopes: SCOPES },
    params: {},
    query: { from: '2026-11-01', to: '2026-11-02' },
    cursor: { position: null },
    response: { locals: { context: {} }, req: { get: () => undefined } },
  } as unknown as Parameters<Route['handle']>[0];
  const gets = apiRoutes(deps).filter(({ method, operationId }) => {
    return method === 'get' && !['readSignatureContract', 'listEventTypes'].includes(operationId);
  });
  expect(gets.length).toBeGreaterThan(20);
  for (const { operationId, handle } of gets) {
    expect([operationId, await handle(call).catch(String)]).toEqual([operationId, 'Error: for reads']);
  }
});
