import { spawnSync } from 'node:child_process';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import { apiRoutes } from '../routes.js';
import { codeSamples, type CodeSample, type SampledOperation } from './code-samples.js';
import { openApiDocument } from './document.js';

type Json = Record<string, any>;

// The cast is safe: routes use their dependencies only while they handle a request.
const document: Json = openApiDocument(apiRoutes({} as never));
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

    expect(sourceOf(samples, 'typescript')).toContain(`callplane.${id}(`);
    for (const value of query.values()) expect(sourceOf(samples, 'typescript')).toContain(`'${value}'`);
    expect(sourceOf(samples, 'python')).toContain(`requests.${method.toLowerCase()}(`);
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
