import { describe, expect, test } from '@jest/globals';
import { controlReason, nearestOf, trimName, trimUnicode, unstorableReason } from './text.js';

describe('text helpers', () => {
  test('trim every Unicode white space at both ends and nowhere else', () => {
    const white =
      '\u0009\u000a\u000b\u000c\u000d\u0020\u0085\u00a0\u1680\u2000\u2001\u2007\u200a\u2028\u2029\u202f\u205f\u3000\ufeff';
    expect(trimUnicode(`${white}a${white}b${white}`)).toBe(`a${white}b`);
    expect(trimUnicode(white)).toBe('');
  });

  test.each([
    ['nothing', ''],
    ['white space', ' \u3000\ufeff'],
    ['zero-width characters', '\u200b\u200c\u200d\u2060\u00ad'],
    ['marks of direction', '\u200e\u202a\u2066'],
    ['control characters', '\u0007\u009f'],
    ['combining characters', '\u0301\u034f\u20dd'],
    ['fillers', '\u115f\u1160\u3164\uffa0\u2800'],
    ['variation selectors and tags', '\ufe0f\u{e0100}\u{e0041}'],
    ['all of them around white space', '\u200b \u0301\u200b'],
  ])('treat a name of %s as empty', (_, text) => expect(trimName(text)).toBe(''));

  test.each(['a', '\u200da\u200d', 'e\u0301', '😀', '👩\u200d💻', '❤\ufe0f', '山', 'ا', '0', '.', '\ue000'])(
    'keep the name %j',
    (text) => expect(trimName(` ${text}\ufeff`)).toBe(text),
  );

  test.each([...Array(0x20).keys(), 0x7f, ...Array.from({ length: 0x20 }, (_, n) => 0x80 + n)])(
    'name the control character %i, other than tabs, line breaks and U+0000',
    (code) => {
      const hex = code.toString(16).toUpperCase().padStart(4, '0');
      const expected = [0x00, 0x09, 0x0a, 0x0d].includes(code)
        ? null
        : `must not contain the control character U+${hex}`;
      expect(controlReason(`a${String.fromCharCode(code)}b`)).toBe(expected);
    },
  );

  test.each([
    ['nmae', 'name'],
    ['Name', 'name'],
    ['max_participants', 'maxParticipants'],
    ['maxParticpants', 'maxParticipants'],
    ['metdata', 'metadata'],
    ['metadatas', 'metadata'],
    ['size', undefined],
    ['n', undefined],
    ['', undefined],
    ['name'.repeat(1000), undefined],
  ])('find for %j the candidate %j', (word, nearest) => {
    expect(nearestOf(word, ['name', 'metadata', 'maxParticipants', 'id'])).toBe(nearest);
  });

  test('report text that PostgreSQL cannot store', () => {
    expect(unstorableReason('a\u0000b')).toMatch(/U\+0000/);
    expect(unstorableReason('a\ud800b')).toMatch(/surrogate/);
    expect(unstorableReason('a😀b')).toBeNull();
  });
});
