import { connect } from 'node:net';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { EVENT_TYPES, SCOPES, SIGNATURE_CONTRACT } from '@callplane/core';
import { Validator } from '@seriousme/openapi-schema-validator';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { apiRoutes } from '../routes.js';
import { openApiDocument } from './document.js';

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
    // `npm run generate` writes the file that the API serves.
    expect(document).toEqual(JSON.parse(JSON.stringify(openApiDocument(apiRoutes({} as never)))));
    for (const route of apiRoutes({} as never)) {
      const operation = document.paths[route.path][route.method];
      expect(operation.operationId).toBe(route.operationId);
      if (route.scope !== null) expect(SCOPES).toContain(operation['x-scope']);
      for (const status of ['401', '503', ...(route.scope === null ? [] : ['403'])])
        expect(operation.responses).toHaveProperty(status);
    }
    const ids = apiRoutes({} as never).map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('is valid OpenAPI 3.1 without dangling references', async () => {
    const text = await (await get('/openapi.json')).text();
    expect(await new Validator().validate(JSON.parse(text))).toEqual({ valid: true });
    const { components } = JSON.parse(text);
    for (const [, kind, name] of text.matchAll(/"#\/components\/(\w+)\/(\w+)"/g))
      expect(components[kind!]).toHaveProperty(name!);
  });

  test('has standard keywords beside each custom keyword, for generated clients', async () => {
    const document = (await (await get('/openapi.json')).json()) as any;
    const { name } = document.paths['/v1/rooms'].post.requestBody.content['application/json'].schema.properties;
    expect(name).toMatchObject({ type: 'string', minLength: 1, maxLength: 120, 'x-trimmedLength': [1, 120] });
    const { url } = document.paths['/v1/webhooks'].post.requestBody.content['application/json'].schema.properties;
    expect(url).toMatchObject({ type: 'string', format: 'uri', maxLength: 2048 });
    const holders: any[] = [];
    JSON.stringify(document, (_key, value) => {
      if (typeof value === 'object' && value !== null) holders.push(value);
      return value;
    });
    for (const schema of holders) {
      if ('x-trimmedLength' in schema) expect([schema.minLength, schema.maxLength]).toEqual(schema['x-trimmedLength']);
      expect(schema).not.toHaveProperty('x-document');
    }
  });

  test('lists the headers of the answers', async () => {
    const { paths, components } = (await (await get('/openapi.json')).json()) as any;
    const { responses } = paths['/v1/rooms'].post;
    const namesOf = (response: any) =>
      Object.keys(
        (response.$ref === undefined ? response : components.responses[response.$ref.split('/').at(-1)]).headers,
      );
    const always = ['x-request-id', 'ratelimit', 'ratelimit-policy'];
    expect(namesOf(responses['201'])).toEqual(expect.arrayContaining([...always, 'idempotency-replayed']));
    expect(namesOf(responses['401'])).toEqual(['x-request-id', 'www-authenticate']);
    expect(namesOf(responses['429'])).toEqual(expect.arrayContaining([...always, 'retry-after']));
    expect(namesOf(responses['503'])).toEqual(expect.arrayContaining([...always, 'retry-after']));
    expect(namesOf(components.responses.MethodNotAllowed)).toContain('allow');
    expect(namesOf(paths['/v1/rooms/{roomId}'].delete.responses['202'])).toContain('preference-applied');
  });

  test('has one schema for every error, and the codes of an answer in its description', async () => {
    const { components } = (await (await get('/openapi.json')).json()) as any;
    const responses = Object.values<any>(components.responses);
    expect(responses.length).toBeGreaterThan(20);
    for (const { description, content } of responses) {
      const { schema, examples } = content['application/json'];
      expect(schema).toEqual({ $ref: '#/components/schemas/Error' });
      const codes = Object.keys(examples);
      expect(components.schemas.Error.properties.error.properties.code.enum).toEqual(expect.arrayContaining(codes));
      for (const code of codes) expect(description).toContain(`\`${code}\`: `);
    }
  });

  test('describes the request of a delivery, and the public keys', async () => {
    const { webhooks, components, paths } = (await (await get('/openapi.json')).json()) as any;
    const { post } = webhooks.event;
    const required = post.parameters.filter((parameter: any) => parameter.required).map(({ name }: any) => name);
    const { signatureHeader, deliveryIdHeader, replayCountHeader, secretVersionHeader } = SIGNATURE_CONTRACT;
    expect(required).toEqual([signatureHeader, deliveryIdHeader, replayCountHeader, secretVersionHeader]);
    expect(post.requestBody.content['application/json'].schema).toEqual({ $ref: '#/components/schemas/Event' });
    const { oneOf, discriminator } = components.schemas.Event;
    expect(Object.keys(discriminator.mapping)).toEqual([...EVENT_TYPES]);
    expect(oneOf.map(({ $ref }: any) => $ref)).toEqual(Object.values(discriminator.mapping));
    await api.call('GET', '/.well-known/jwks.json', { key: null });
    expect(paths['/.well-known/jwks.json'].get.security).toEqual([]);
  });

  test('has a documentation page that works without internet access', async () => {
    const page = await get('/docs/reference/');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    const html = await page.text();
    for (const [, path] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
      // An empty icon, so that browsers request none.
      if (path === 'data:,') continue;
      expect(path).toMatch(/^\w+\.js$/);
      const asset = await get(`/docs/reference/${path}`);
      expect([path, asset.status]).toEqual([path, 200]);
      await asset.arrayBuffer();
    }
    expect((await fetch(`${api.url}/docs/reference/`, { method: 'POST' })).status).toBe(405);
    expect((await get('/docs/../package.json')).status).toBe(404);
    expect((await get('/docs/nothing')).status).toBe(404);
  });

  test('goes to a caller that pipelines its requests once', async () => {
    const answers = await new Promise<string>((resolve, reject) => {
      let text = '';
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1', () =>
        socket.write('GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5)),
      );
      socket.on('data', (chunk) => (text += chunk.toString()));
      socket.on('close', () => resolve(text)).on('error', reject);
    });
    expect([...answers.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status)).toEqual(['200', '429']);
  });
});
