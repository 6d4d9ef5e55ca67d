import { expect, test } from '@jest/globals';
import { align, printable, quoted } from './terminal.js';

/** ESC, DEL, C1, right-to-left override, line separator, isolate. */
const STEERING = '\u001b\u007f\u009b\u202e\u2028\u2066';
const ESCAPED = String.raw`\u001b\u007f\u009b\u202e\u2028\u2066`;

test('escapes what steers a terminal, and leaves other text alone', () => {
  expect(quoted(`a"${STEERING}\n`)).toBe(String.raw`"a\"${ESCAPED}\n"`);
  expect(printable(`Zoë 👩‍👩‍👧 שלום\n${STEERING}\r`)).toBe(`Zoë 👩‍👩‍👧 שלום\n${ESCAPED}\\u000d`);
  const json = JSON.stringify({ name: STEERING });
  expect(JSON.parse(printable(json))).toEqual({ name: STEERING });
});

test('a line break in a cell does not begin a row', () => {
  expect(
    align([
      ['a\nb', 'x'],
      ['c', 'y'],
    ]),
  ).toBe('a\\u000ab  x\nc         y');
});
