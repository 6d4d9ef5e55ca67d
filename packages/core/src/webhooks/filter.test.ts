import { describe, expect, test } from '@jest/globals';
import { filterFailures } from './filter.js';

const many = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n));

describe('a filter', () => {
  test.each([
    { 'room.name': ['Daily'] },
    { 'room.metadata.team': ['core', 7, true, null, { prefix: 'x' }] },
    Object.fromEntries(many(8, (n) => [`a.${n}`, many(8, String)])),
    { ['a'.repeat(255)]: ['b'.repeat(255)] },
  ])('is accepted: %j', (filter) => expect(filterFailures('body.filter', filter)).toEqual([]));

  test.each([
    [{}, 'body.filter'],
    [Object.fromEntries(many(9, (n) => [`a${n}`, ['x']])), 'body.filter'],
    [{ 'room..name': ['x'] }, 'body.filter.room..name'],
    [{ '': ['x'] }, 'body.filter.'],
    [{ a: [] }, 'body.filter.a'],
    [{ a: many(9, String) }, 'body.filter.a'],
    [{ a: 'x' }, 'body.filter.a'],
    [{ a: ['x'.repeat(256)] }, 'body.filter.a'],
    [{ a: [{ prefix: 1 }] }, 'body.filter.a'],
    [{ a: [{ prefix: 'x', suffix: 'y' }] }, 'body.filter.a'],
    [{ a: [['x']] }, 'body.filter.a'],
    [{ a: [{ prefix: 'x'.repeat(256) }] }, 'body.filter.a'],
  ])('is refused: %j', (filter, path) => {
    expect(filterFailures('body.filter', filter)).toMatchObject([{ path }]);
  });
});
