import { describe, expect, test } from '@jest/globals';
import { CLIENT_MESSAGES } from '@callplane/protocol';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { readMessage } from './frames.js';

const readText = (text: string) => readMessage(text);
const read = (message: unknown) => readText(JSON.stringify(message));

describe('readMessage', () => {
  test('uses schemas that are valid JSON Schema, which the gateway does not check at its start', () => {
    const ajv = new Ajv2020();
    for (const schema of Object.values(CLIENT_MESSAGES)) {
      expect([ajv.validateSchema(schema), ajv.errors]).toEqual([true, null]);
    }
  });

  test('returns a valid message unchanged', () => {
    const message = { type: 'message', id: 'x', data: { a: [1, null] }, to: ['part_1'] };
    expect(read(message)).toEqual({ is: 'message', message, chars: JSON.stringify(message).length });
  });

  test.each(['', 'x', '[]', 'null', '1', '"join"', '{}', '{"type":1}', '{"type":'])(
    'reports a protocol error for the frame: %s',
    (text) => {
      expect(readText(text)).toMatchObject({ is: 'violation', reason: 'protocol_error' });
    },
  );

  test('says where a frame stops being JSON', () => {
    expect(readText('{"type":\n}')).toMatchObject({
      cause: 'The frame is not JSON: unexpected "}" at line 2, column 1.',
    });
  });

  test('reports every failure of an invalid message, with the id of the message', () => {
    expect(read({ type: 'mute', id: 'm1', trackId: 'a b', extra: 1 })).toEqual({
      is: 'invalid',
      type: 'mute',
      id: 'm1',
      details: [
        { path: 'extra', message: 'is not a known field' },
        { path: 'muted', message: 'is required' },
        { path: 'trackId', message: expect.stringContaining('must match ^') },
      ],
    });
    expect(
      read({ type: 'subscribe', tracks: [{ participantId: 'p', trackId: 't', layer: { spatial: 9 } }] }),
    ).toMatchObject({
      details: [{ path: 'tracks[0].layer.spatial', message: 'must be at most 2' }],
    });
    expect(read({ type: 'unheard-of' })).toMatchObject({ details: [{ path: 'type' }] });
    expect(read({ type: 'mute', trackid: 'a', muted: true })).toMatchObject({
      details: [
        { path: 'trackid', message: 'is not a known field; did you mean trackId?' },
        { path: 'trackId', message: 'is required' },
      ],
    });
    expect(read({ type: 'unpublsh' })).toMatchObject({
      details: [{ path: 'type', message: 'is not a known message type; did you mean unpublish?' }],
    });
  });

  test('rejects duplicate keys, and inexact numbers in any spelling', () => {
    expect(readText('{"type":"ping","id":"a","i\\u0064":"b"}')).toMatchObject({ details: [{ path: 'id' }] });
    expect(readText('{"type":"message","data":{"a":1,"a":1}}')).toMatchObject({ details: [{ path: 'data.a' }] });
    expect(readText('{"type":"message","data":9007199254740993e0}')).toMatchObject({ details: [{ path: 'data' }] });
    expect(readText('{"type":"message","data":{"__proto__":1}}')).toMatchObject({ is: 'message' });
  });

  test('rejects text that the database cannot hold, numbers beyond a double, and too deep nesting', () => {
    expect(read({ type: 'metadata', metadata: { a: '\u0000' } })).toMatchObject({ details: [{ path: 'metadata.a' }] });
    expect(readText('{"type":"message","data":1e400}')).toMatchObject({ is: 'invalid' });
    const deep = `{"type":"message","data":${'['.repeat(5000)}${']'.repeat(5000)}}`;
    expect(readText(deep)).toMatchObject({ is: 'invalid' });
  });

  test('has a bound for every array in the schemas', () => {
    const arrays = (schema: unknown): object[] => {
      if (typeof schema !== 'object' || schema === null) return [];
      const own = (schema as { type?: unknown }).type === 'array' ? [schema] : [];
      return [...own, ...Object.values(schema).flatMap(arrays)];
    };
    for (const array of arrays(CLIENT_MESSAGES)) expect(array).toHaveProperty('maxItems');
  });

  test('accepts only known message types and never throws, whatever a frame holds', () => {
    const types = ['join', 'message', 'toString', '__proto__', 'constructor'];
    const field = fc.anything();
    const almost = fc.record(
      { type: fc.constantFrom(...types), id: field, token: field, data: field, to: field },
      { requiredKeys: ['type'] },
    );
    fc.assert(
      fc.property(fc.oneof(almost, fc.jsonValue(), fc.string()), (value) => {
        let text: string;
        try {
          text = typeof value === 'string' ? value : JSON.stringify(value);
        } catch {
          return;
        }
        const result = readText(text);
        if (result.is === 'message') {
          expect(['join', 'message']).toContain(result.message.type);
        } else if (result.is === 'invalid') expect(result.details.length).toBeLessThanOrEqual(20);
      }),
      { numRuns: 1000 },
    );
  });
});
