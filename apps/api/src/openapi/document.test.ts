import { beforeAll, describe, expect, test } from '@jest/globals';
import { SCOPES } from '@callplane/core';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { apiRoutes } from '../routes.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
const get = (path: string) => fetch(api.url + path);

describe('the OpenAPI document', () => {
  test('is public, describes every route, and names a known scope for each', async () => {
    const response = await get('/openapi.json');
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    const document = (await response.json()) as any;
    expect(document.openapi).toBe('3.1.0');
    for (const route of apiRoutes(api.deps)) {
      const operation = document.paths[route.path][route.method];
      expect(operation.operationId).toBe(route.operationId);
      if (route.scope !== null) expect(SCOPES).toContain(operation['x-scope']);
      for (const status of ['401', '503', ...(route.scope === null ? [] : ['403'])])
        expect(operation.responses).toHaveProperty(status);
    }
    const ids = apiRoutes(api.deps).map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('refers to nothing that it does not hold', async () => {
    const text = await (await get('/openapi.json')).text();
    const document = JSON.parse(text);
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g))
      expect(document.components.schemas).toHaveProperty(name!);
  });

  test('the page shows it without the internet', async () => {
    const page = await get('/docs');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    const html = await page.text();
    for (const [, path] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
      expect(path).toMatch(/^\/docs\//);
      const asset = await get(path!);
      expect([path, asset.status]).toEqual([path, 200]);
      await asset.arrayBuffer();
    }
    expect((await get('/docs/../package.json')).status).toBe(404);
    expect((await get('/docs/index.html')).status).toBe(404);
  });
});

describe('health', () => {
  test('live and ready, without Redis still ready, without PostgreSQL not', async () => {
    expect((await get('/livez')).status).toBe(200);
    expect(await (await get('/readyz')).json()).toEqual({ status: 'ok', checks: { postgres: 'ok', redis: 'ok' } });
    const other = await startTestApi();
    await other.redis.stop();
    expect(await (await fetch(`${other.url}/readyz`)).json()).toEqual({
      status: 'degraded',
      checks: { postgres: 'ok', redis: 'unavailable' },
    });
    await other.database.close();
    expect((await fetch(`${other.url}/readyz`)).status).toBe(503);
    expect((await fetch(`${other.url}/livez`)).status).toBe(200);
  });
});
