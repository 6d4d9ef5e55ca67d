import { request as httpRequest } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { startTestApi, type TestApi } from './api.testkit.js';
import { documentedAnswers } from './openapi/documented-answers.testkit.js';
import { openApiDocument } from './openapi/document.js';
import { apiRoutes } from './routes.js';

let api: TestApi;
let check: ReturnType<typeof documentedAnswers>;
let room: string;
let webhook: string;
beforeAll(async () => {
  api = await startTestApi({ operationWaitMs: 0 });
  check = documentedAnswers(openApiDocument(apiRoutes(api.deps)));
  room = await api.room();
  webhook = (await api.call('POST', '/v1/webhooks', { body: { url: 'https://example.com/' } })).body.id;
});

/** Sends a request with Node's own client, because other client libraries normalise it. */
function send(
  method: string,
  path: string,
  headers: Record<string, string>,
  body: string | Buffer,
): Promise<{ status: number; headers: Record<string, any>; text: string }> {
  const { port } = new URL(api.url);
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      {
        host: '127.0.0.1',
        port,
        method,
        path,
        headers: {
          authorization: `Bearer ${api.tenant.key}`,
          'content-length': String(Buffer.byteLength(body)),
          ...headers,
        },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, text }));
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

async function expectDecent(
  method: string,
  path: string,
  headers: Record<string, string>,
  body: string | Buffer,
): Promise<void> {
  const answer = await send(method, path, headers, body);
  expect(answer.status).toBeLessThan(500);
  expect(answer.text).not.toMatch(/node_modules|\.ts:\d|at async|SELECT |prisma/i);
  check({ method, path, ...answer });
}

const METHODS = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS'];
// The cast is safe: routes use their dependencies only while they handle a request. A stream never ends.
const ROUTES = apiRoutes({} as never).filter(({ streams }) => streams !== true);
/** Fills in path parameters: with real objects of these two kinds, and with unknown ids of the others. */
const pathOf = (pattern: string) =>
  pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => ({ roomId: room, endpointId: webhook })[name] ?? `${name}_0`);
const paths = () => [...new Set(ROUTES.map(({ path }) => pathOf(path)))];
const WITH_BODY = ROUTES.filter(({ body }) => body !== undefined);
const writes = () => WITH_BODY.map(({ method, path }) => [method.toUpperCase(), pathOf(path)] as const);
const FIELDS = WITH_BODY.flatMap(({ body }) => Object.keys((body as { properties?: object }).properties ?? {}));
/** A third of the bodies use field names that the API knows, so that they pass the check for unknown fields. */
const anyBody = fc.oneof(
  fc.json({ maxDepth: 40 }),
  fc.string({ unit: 'binary' }),
  fc
    .dictionary(
      fc.constantFrom(...new Set([...FIELDS, '__proto__', 'constructor'])),
      fc.oneof(
        fc.jsonValue(),
        fc.string({ unit: 'binary' }),
        fc.double(),
        fc.boolean(),
        fc.constantFrom(
          'room:join',
          'x\u0000',
          '\ud800',
          1e21,
          -0,
          'https://[::]',
          '2016-12-31T23:59:60Z',
          '0000-01-01T00:00:00Z',
        ),
        fc.webUrl(),
        fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
      ),
    )
    .map((value) => JSON.stringify(value)),
);
const headerText = fc.string({
  unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 300,
});
/** The characters that Node's client accepts in a request target. */
const targetText = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 200,
});

describe('hostile input', () => {
  test('arbitrary bodies get no 5xx, and an answer of the documented shape', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...writes()), anyBody, ([method, path], body) =>
        expectDecent(method, path, { 'content-type': 'application/json' }, body),
      ),
      { numRuns: 600 },
    );
  });

  test('arbitrary paths and query strings get no 5xx, and an answer of the documented shape', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...METHODS),
        fc.oneof(
          targetText.map((text) => `/${text}`),
          targetText.map((text) => `/v1/rooms/${text}`),
          fc.tuple(fc.constantFrom(...paths()), targetText).map(([path, text]) => `${path}?${text}`),
          fc
            .tuple(fc.constantFrom('limit', 'cursor', 'status', 'projectId', '__proto__', 'limit[]'), targetText)
            .map(([name, text]) => `/v1/rooms?${name}=${encodeURIComponent(text)}`),
          fc
            .tuple(fc.constantFrom('after', 'roomId', 'type', 'limit', 'environmentId'), targetText)
            .map(([name, text]) => `/v1/events?${name}=${encodeURIComponent(text)}`),
        ),
        (method, path) => expectDecent(method, path, {}, ''),
      ),
      { numRuns: 600 },
    );
  });

  test('arbitrary headers get no 5xx, and an answer of the documented shape', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...METHODS),
        fc.constantFrom(...paths()),
        fc.dictionary(
          fc.constantFrom(
            'authorization',
            'content-type',
            'content-encoding',
            'prefer',
            'idempotency-key',
            'x-request-id',
            'accept',
            'x-forwarded-for',
            'x-http-method-override',
            'if-none-match',
            'range',
            'expect',
            'accept-encoding',
            'origin',
          ),
          headerText,
        ),
        fc.constantFrom('{}', '{"name":"a"}', ''),
        (method, path, headers, body) => expectDecent(method, path, headers, body),
      ),
      { numRuns: 600 },
    );
  });

  test('deep nesting, unclosed brackets and a name of spaces get no 5xx, and an answer of the documented shape', async () => {
    const json = { 'content-type': 'application/json' };
    await expectDecent('POST', '/v1/rooms', json, '['.repeat(60_000));
    await expectDecent(
      'POST',
      '/v1/rooms',
      json,
      `{"name":"a","metadata":${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}}`,
    );
    await expectDecent('POST', '/v1/rooms', json, '{"a":'.repeat(10_000));
    await expectDecent('POST', '/v1/rooms', json, `{"name":"${' '.repeat(65_000)}"}`);
  });
});
