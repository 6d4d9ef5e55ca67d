import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATIONS } from '@callplane/server/requests';
import { repositoryRoot } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { run } from '../../apps/cli/src/program.js';

const SOURCES = join(repositoryRoot, 'apps', 'console', 'src');
const sources = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name) && !name.includes('.test.'))
  .map((name) => ({ name, text: readFileSync(join(SOURCES, name), 'utf8') }));

/** The operations that the console calls through `callApi` and the hooks around it. */
const called = new Set(
  sources.flatMap(({ text }) =>
    [...text.matchAll(/\b(?:useApi|useApiList|useApiAction|callApi)\(\s*'(\w+)'/g)].map(([, id]) => id!),
  ),
);
/** Requests that the console makes without `callApi`: the sign-in, which sends a key, and the stream. */
const REQUESTS = {
  'api/call.ts': [],
  'session/sign-in.ts': ['createConsoleSession'],
  'stream/stream.ts': ['openStream'],
} as const;

interface Document {
  paths: Record<string, Record<string, { operationId?: string }>>;
}
const document = JSON.parse(readFileSync(join(repositoryRoot, 'docs', 'openapi.json'), 'utf8')) as Document;
const documented = new Map(
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => [operationId, { method: method.toUpperCase(), path }]),
  ),
);

test('the console makes requests in three places only, and each call is an operation of the OpenAPI document', () => {
  expect(called.size).toBeGreaterThan(30);
  const requesting = sources.filter(({ text }) =>
    /\bfetch\(|\bEventSource\(|XMLHttpRequest|sendBeacon|\bWebSocket\(|\bimport\(\s*['"]https?:/.test(text),
  );
  expect(requesting.map(({ name }) => name).sort()).toEqual(Object.keys(REQUESTS).sort());
  for (const id of called) {
    const { method, path } = OPERATIONS[id as keyof typeof OPERATIONS];
    expect([id, documented.get(id)]).toEqual([id, { method, path }]);
  }
  for (const [name, ids] of Object.entries(REQUESTS)) {
    const { text } = sources.find((source) => source.name === name)!;
    for (const id of ids) expect(text).toMatch(new RegExp(`['\`]${documented.get(id)!.path}\\b`));
  }
});

test('everything that the console calls is in the SDK, and rtc calls it with an API key', async () => {
  const sdk = readFileSync(join(repositoryRoot, 'packages', 'server-js', 'src', 'operations.generated.ts'), 'utf8');
  let written = '';
  const clock = { now: () => new Date(0) };
  await run({ environment: {}, clock, write: (text) => void (written += text) }, ['api', '--json']);
  const { data } = JSON.parse(written) as { data: { operation: string }[] };
  const ofRtc = new Set(data.map(({ operation }) => operation));
  // Signing out ends the cookie of a browser. `rtc console login` and `rtc console sessions revoke` are its counterparts.
  const ofKey = [...called].filter((id) => id !== 'endConsoleSession');
  expect(ofKey.filter((id) => !ofRtc.has(id))).toEqual([]);
  expect([...called].filter((id) => !new RegExp(`\\b${id}\\b`).test(sdk))).toEqual([]);
});
