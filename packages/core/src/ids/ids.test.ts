import { describe, expect, test } from '@jest/globals';
import { ID_PREFIXES, newId, PATH_ID_PATTERN, type IdKind } from './ids.js';

describe('ids', () => {
  test.each(Object.keys(ID_PREFIXES) as IdKind[])('of the kind %s have their prefix and 26 characters', (kind) => {
    expect(newId(kind)).toMatch(new RegExp(`^${ID_PREFIXES[kind]}_[0-7][0-9a-hjkmnp-tv-z]{25}$`));
    expect(newId(kind)).toMatch(new RegExp(PATH_ID_PATTERN));
  });

  test('sort in the order of their creation', () => {
    const ids = Array.from({ length: 1000 }, () => newId('room'));
    expect([...ids].sort()).toEqual(ids);
  });
});
