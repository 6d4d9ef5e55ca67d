import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readMessage } from './read-message.js';

const read = (message: unknown) => readMessage(JSON.stringify(message));

describe('a frame', () => {
  test('that is a message is read as it is', () => {
    const message = { type: 'message', id: 'x', data: { a: [1, null] }, to: ['part_1'] };
    expect(read(message)).toEqual({ ok: true, message });
  });

  test.each(['', 'x', '[]', 'null', '1', '"join"', '{}', '{"type":1}', '{"type":'])('%s is none', (text) => {
    expect(readMessage(text)).toMatchObject({ ok: false, protocolError: expect.any(String) });
  });

  test('that is wrong is told all that is wrong with it, and its id', () => {
    expect(read({ type: 'mute', id: 'm1', trackId: 'a b', extra: 1 })).toEqual({
      ok: false,
      protocolError: null,
      type: 'mute',
      id: 'm1',
      details: expect.arrayContaining([
        { path: 'muted', message: 'is required' },
        { path: 'extra', message: 'is not a known field' },
        { path: 'trackId', message: expect.stringContaining('pattern') },
      ]),
    });
    expect(
      read({ type: 'subscribe', tracks: [{ participantId: 'p', trackId: 't', layer: { spatial: 9 } }] }),
    ).toMatchObject({
      details: [{ path: 'tracks[0].layer.spatial', message: 'must be <= 2' }],
    });
    expect(read({ type: 'unheard-of' })).toMatchObject({ details: [{ path: 'type' }] });
  });

  test('with what the database cannot hold, or a number that no double holds, is refused', () => {
    expect(read({ type: 'metadata', metadata: { a: '\u0000' } })).toMatchObject({ details: [{ path: 'metadata.a' }] });
    expect(readMessage('{"type":"message","data":1e400}')).toMatchObject({ ok: false, protocolError: null });
    expect(readMessage(`{"type":"message","data":${'['.repeat(5000)}${']'.repeat(5000)}}`)).toMatchObject({
      ok: false,
    });
  });

  test('whatever it holds: it is judged, and only known types with known fields pass', () => {
    const almost = fc.record(
      {
        type: fc.constantFrom(
          'join',
          'resume',
          'publish',
          'candidate',
          'message',
          'toString',
          '__proto__',
          'constructor',
        ),
        id: fc.anything(),
        token: fc.anything(),
        tracks: fc.anything(),
        sdp: fc.anything(),
        data: fc.anything(),
        candidate: fc.anything(),
        target: fc.anything(),
      },
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
        const result = readMessage(text);
        if (result.ok) expect(['join', 'resume', 'publish', 'candidate', 'message']).toContain(result.message.type);
        else if (result.protocolError === null) expect(result.details.length).toBeLessThanOrEqual(20);
      }),
      { numRuns: 1000 },
    );
  });
});
