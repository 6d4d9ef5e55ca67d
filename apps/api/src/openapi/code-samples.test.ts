import { execFile, spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import { repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { apiRoutes } from '../routes.js';
import { codeSamples, type CodeSample, type SampledOperation } from './code-samples.js';
import { openApiDocument } from './document.js';

type Json = Record<string, any>;

// The cast is safe: routes use their dependencies only while they handle a request.
const routes = apiRoutes({} as never);
const document: Json = openApiDocument(routes);
const operations = Object.entries(document['paths'] as Json).flatMap(([path, methods]) =>
  Object.entries(methods as Json).map(([method, operation]): [id: string, method: string, path: string, Json] => [
    operation.operationId,
    method.toUpperCase(),
    path,
    operation,
  ]),
);

/** The arguments that a shell passes to curl. */
function curlArguments(source: string): string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${source}`;
  const env = { BASE: 'http://callplane/v1', KEY: 'rtc_sk_x', PATH: process.env['PATH'] };
  const { status, stdout, stderr } = spawnSync('sh', ['-eu', '-c', script], { encoding: 'utf8', env });
  expect([status, stderr]).toEqual([0, '']);
  return stdout.split('\0').slice(0, -1);
}

function readCurl(source: string) {
  const args = curlArguments(source);
  const valuesOf = (option: string) => args.filter((_, at) => args[at - 1] === option);
  const body = valuesOf('-d')[0];
  return {
    method: valuesOf('-X')[0] ?? (body === undefined ? 'GET' : 'POST'),
    address: args.find((argument) => argument.startsWith('http')),
    headers: valuesOf('-H'),
    body: body === undefined ? undefined : (JSON.parse(body) as unknown),
  };
}

/** The operation of the route that serves such a request: the first one with a matching path, as in the router. */
function servedBy(method: string, address: string): string | undefined {
  const { pathname } = new URL(address);
  const path = routes.find((route) => patternOf(route.path).test(pathname))?.path;
  return routes.find((route) => route.path === path && route.method === method.toLowerCase())?.operationId;
}

const patternOf = (path: string) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[A-Za-z0-9_-]+')}$`);

const sourceOf = (samples: CodeSample[], lang: string) => samples.find((sample) => sample.lang === lang)!.source;

describe('the code samples of the OpenAPI document', () => {
  test.each(operations)('call %s with curl, the server SDK and Python', (id, method, path, operation) => {
    const samples = operation['x-codeSamples'] as CodeSample[];
    const curl = readCurl(sourceOf(samples, 'shell'));
    const target = ((operation['parameters'] ?? []) as Json[])
      .filter((parameter) => parameter['in'] === 'path')
      .reduce((filled, { name, example }) => filled.replace(`{${name}}`, example), path);
    const query = new URLSearchParams(
      ((operation['parameters'] ?? []) as Json[])
        .filter((parameter) => parameter['in'] === 'query' && parameter['required'] === true)
        .map(({ name, example }): [string, string] => [name, String(example)]),
    );
    const { examples = {} } = operation['requestBody']?.content['application/json'] ?? {};
    const body = (Object.values(examples as Json)[0] as Json | undefined)?.['value'];
    expect(curl).toMatchObject({
      method,
      address: `http://callplane${target}${query.size === 0 ? '' : `?${query.toString()}`}`,
    });
    expect(curl.body).toEqual(body);
    const secured = operation['security']?.length !== 0;
    expect(curl.headers.includes('Authorization: Bearer rtc_sk_x')).toBe(secured);
    expect(curl.headers.includes('Content-Type: application/json')).toBe(body !== undefined);
    if (path.startsWith('/v1')) expect(servedBy(method, curl.address!)).toBe(id);

    expect(sourceOf(samples, 'typescript')).toContain(`callplane.${id === 'openStream' ? 'stream' : id}(`);
    for (const value of query.values()) expect(sourceOf(samples, 'typescript')).toContain(`'${value}'`);
    expect(sourceOf(samples, 'python')).toContain(`requests.${method.toLowerCase()}(`);
  });
});

/** The messages of the compiler for these files, in one program, as a customer's project would compile them. */
async function compile(files: Record<string, string>): Promise<string> {
  const folder = temporaryDirectory('samples');
  const source = (name: string) => [join(repositoryRoot, 'packages', name, 'src/index.ts')];
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: 'es2022',
    module: 'nodenext',
    types: ['node'],
    skipLibCheck: true,
    paths: { '@callplane/server': source('server-js'), '@callplane/webhook-verifier': source('webhook-verifier') },
  };
  symlinkSync(join(repositoryRoot, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: Object.keys(files) }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const compiler = join(repositoryRoot, 'node_modules/typescript-7/bin/tsc');
  const options = { cwd: folder, encoding: 'utf8' } as const;
  return promisify(execFile)(process.execPath, [compiler, '-p', '.'], options).then(
    ({ stdout }) => stdout,
    (error: unknown) => `${(error as { stdout?: string }).stdout ?? ''}${String(error)}`,
  );
}

describe('the samples for the server SDK', () => {
  test('compile with the types of @callplane/server, and a wrong field would not', async () => {
    const files = Object.fromEntries(
      operations.map(([id, , , operation]) => [
        `${id}.ts`,
        sourceOf(operation['x-codeSamples'] as CodeSample[], 'typescript'),
      ]),
    );
    expect(operations.length).toBeGreaterThan(30);
    const wrong = files['createRoom.ts']!.replace('name:', 'title:');
    expect(wrong).not.toBe(files['createRoom.ts']);
    const printed = await compile({ ...files, 'wrong.ts': wrong });
    const errors = printed.split('\n').filter((line) => line.includes('error TS'));
    expect(errors).toEqual([expect.stringMatching(/^wrong\.ts.*'title'/)]);
  });
});

const OPERATION: SampledOperation = {
  operationId: 'createThing',
  method: 'POST',
  path: '/v1/rooms/{roomId}/things',
  pathExamples: { roomId: 'room_1' },
  queryExamples: {},
  body: { name: `it's "$(id)" \\ é`, 'a-b': [true, null, 1.5], nothing: {} },
  needsKey: true,
  isIdempotent: true,
  isList: false,
  isStream: false,
};

describe('codeSamples', () => {
  test('quotes the body so that the shell passes it on unchanged', () => {
    const { body, headers } = readCurl(sourceOf(codeSamples(OPERATION), 'shell'));
    expect(body).toEqual(OPERATION.body);
    expect(headers).toContainEqual(expect.stringMatching(/^Idempotency-Key: \d+/));
  });

  test('writes the fields of path and body as one argument of the server SDK', () => {
    const source = sourceOf(codeSamples(OPERATION), 'typescript');
    const argument = /createThing\((.*)\)\);$/m.exec(source)![1]!;
    // The sample is source code: only evaluation shows what it means.
    const value = runInNewContext(`JSON.stringify(${argument})`) as string;
    expect(JSON.parse(value)).toEqual({ roomId: 'room_1', ...(OPERATION.body as object) });
  });

  test('iterates over a list with the server SDK', () => {
    const source = sourceOf(
      codeSamples({ ...OPERATION, operationId: 'listThings', body: undefined, isList: true }),
      'typescript',
    );
    expect(source).toContain("for await (const item of callplane.listThings({ roomId: 'room_1' }))");
  });

  test('writes the body with the words of Python', () => {
    const source = sourceOf(codeSamples(OPERATION), 'python');
    expect(source).toContain('"a-b": [True, None, 1.5], "nothing": {}}');
    expect(source).toContain(
      'headers={"Authorization": "Bearer " + os.environ["KEY"], "Idempotency-Key": str(uuid.uuid4())}',
    );
    expect(source).toContain('os.environ["BASE"] + "/rooms/room_1/things"');
  });
});
