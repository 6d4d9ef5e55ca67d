import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { OPERATIONS } from './facts.generated.js';
import { createClient } from './index.js';
import { buildRequest } from './request.js';

interface Documented {
  operationId: string;
  parameters?: { name: string; in: string }[];
  requestBody?: { content: { 'application/json': { schema: { properties?: Record<string, unknown> } } } };
}

const text = readFileSync(join(import.meta.dirname, '../../../docs/openapi.json'), 'utf8');
const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, Documented>> };
// `stream` reads the stream.
const documented = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation }))
    .filter(({ operationId }) => operationId !== 'openStream'),
);
const client = createClient({ baseUrl: 'https://calls.example.com/v1', apiKey: 'rtc_sk_1' });

describe('the client', () => {
  test('has a function for every operation of the OpenAPI document, and no other but its helpers', () => {
    const helpers = ['consumeEvents', 'stream', 'waitForOperation'];
    const names = documented.map(({ operationId }) => operationId);
    expect(names.length).toBeGreaterThan(30);
    expect(Object.keys(client).sort()).toEqual([...names, ...helpers].sort());
    expect(Object.values(client).every((value) => typeof value === 'function')).toBe(true);
  });

  test.each(documented)('$operationId has the method and the path of the document', ({ operationId, method, path }) => {
    expect(OPERATIONS[operationId as keyof typeof OPERATIONS]).toMatchObject({ method, path });
  });

  test('finds each field of an input in exactly one of path, query and body', () => {
    for (const { operationId, parameters = [], requestBody } of documented) {
      const outside = parameters.filter((parameter) => parameter.in !== 'header').map(({ name }) => name);
      const inBody = Object.keys(requestBody?.content['application/json'].schema.properties ?? {});
      const prefixed = (name: string) => `to${name[0]!.toUpperCase()}${name.slice(1)}`;
      const names = [...outside, ...inBody.map((name) => (outside.includes(name) ? prefixed(name) : name))];
      expect([operationId, [...new Set(names)]]).toEqual([operationId, names]);
    }
  });

  test('takes a field of the body that is named like one of the path with the prefix `to`', () => {
    const input = { roomId: 'room_a', participantId: 'part_b', toRoomId: 'room_c', permissions: ['room:join'] };
    const facts = OPERATIONS.moveParticipant;
    const { target, body } = buildRequest('moveParticipant', facts, { input, options: {}, newKey: () => 'key' });
    expect(target).toBe('/v1/rooms/room_a/participants/part_b/move');
    expect(body).toBe('{"roomId":"room_c","permissions":["room:join"]}');
  });

  test('shows its key nowhere', () => {
    expect(JSON.stringify(client)).not.toContain('rtc_sk');
  });
});
