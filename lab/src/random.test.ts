import { expect, test } from '@jest/globals';
import { Random } from './random.js';

const draw = (random: Random): number[] => Array.from({ length: 20 }, () => random.between(1, 6));

test('the same seed gives the same choices, and other seeds and forks give others', () => {
  expect(draw(new Random(7))).toEqual(draw(new Random(7)));
  expect(draw(new Random(7))).not.toEqual(draw(new Random(8)));
  const [first, second] = [new Random(7).fork('a'), new Random(7).fork('b')];
  expect(draw(first)).toEqual(draw(new Random(7).fork('a')));
  expect(draw(first)).not.toEqual(draw(second));
});

test('choices lie within their bounds, and every one of them occurs', () => {
  const random = new Random(1);
  const drawn = new Set(Array.from({ length: 500 }, () => random.between(1, 6)));
  expect([...drawn].sort()).toEqual([1, 2, 3, 4, 5, 6]);
  expect(random.text()).toMatch(/^[0-9a-f]{16}$/);
  expect(() => random.pick([])).toThrow('nothing to pick from');
});

test('a salt changes names and keys, and nothing else', () => {
  const [plain, salted] = [new Random(7).fork('a'), new Random(7, 'run1-').fork('a')];
  expect(salted.text()).toBe(`run1-${plain.text()}`);
  expect(salted.between(1, 1000)).toBe(plain.between(1, 1000));
});
