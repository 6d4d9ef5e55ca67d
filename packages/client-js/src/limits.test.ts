import { describe, expect, test } from '@jest/globals';
import { assertMessage, assertMetadata, assertPage, assertShown, assertTracks } from './limits.js';

const codeOf = (check: () => void) => {
  try {
    check();
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  }
};
const circular: Record<string, unknown> = {};
circular['self'] = circular;

describe('requests that the gateway would refuse are refused before they are sent', () => {
  test.each([
    ['a message of 16 KiB', () => assertMessage('x'.repeat(16 * 1024 - 2), undefined), undefined],
    ['a message above 16 KiB', () => assertMessage('x'.repeat(16 * 1024 - 1), undefined), 'payload_too_large'],
    ['a message that is large as UTF-8', () => assertMessage('☎'.repeat(6000), undefined), 'payload_too_large'],
    ['a message without JSON', () => assertMessage(undefined, undefined), 'invalid_argument'],
    ['a message that refers to itself', () => assertMessage(circular, undefined), 'invalid_argument'],
    ['a message to nobody', () => assertMessage(1, []), 'invalid_argument'],
    ['a message to 101', () => assertMessage(1, Array(101).fill('part_1')), 'invalid_argument'],
    ['metadata that is a list', () => assertMetadata([]), 'invalid_argument'],
    ['metadata above 16 KiB', () => assertMetadata({ a: 'x'.repeat(16 * 1024) }), 'payload_too_large'],
    ['no track', () => assertTracks(0), 'invalid_argument'],
    ['501 tracks', () => assertTracks(501), 'invalid_argument'],
    ['201 shown participants', () => assertShown(201), 'invalid_argument'],
    ['a page of 101', () => assertPage({ limit: 101 }), 'invalid_argument'],
    ['a page of half a participant', () => assertPage({ limit: 0.5 }), 'invalid_argument'],
    ['a page of the default size', () => assertPage({}), undefined],
  ])('%s', (_, check, code) => {
    expect(codeOf(check)).toBe(code);
  });

  test('the error names the argument in its details', () => {
    expect(() => assertMetadata(1)).toThrow(
      expect.objectContaining({ details: [{ path: 'metadata', message: 'must be an object' }] }),
    );
  });
});
