import { expect, test } from '@jest/globals';
import { labelsOf } from './labels.js';

function textOf(name: string, width = 640): string {
  const labels = labelsOf([{ x: 0, y: 0, width, height: 360, name, fileId: 'camera' }]);
  return labels.trimEnd().slice(labels.lastIndexOf(')}', labels.lastIndexOf('\\clip') + 40) + 2);
}

test('names stay as they are', () => {
  for (const name of ['Ada', "O'Neill, B. 100%", '名前', 'مرحبا', 'Ada 👩‍💻']) expect(textOf(name)).toBe(name);
});

test('names cannot change the picture, nor add lines', () => {
  expect(textOf('{\\b1}\nDialogue: x')).toBe('\\{\\\u2060b1} Dialogue: x');
});

test('long names are cut between letters, the sooner the wider these are', () => {
  expect(textOf('👩‍💻'.repeat(40), 320)).toBe(`${'👩‍💻'.repeat(18)}…`);
  expect(textOf('a'.repeat(100), 320)).toMatch(/^a{35}…$/);
});
