import { expect, test } from '@jest/globals';
import { ID_PREFIXES, newId } from '@callplane/core';
import { createTestDatabase, stopAtEnd } from '@callplane/testing';
import { Database } from './database.js';
import { newIdInSql } from './sql.js';

const database = new Database({ url: (await createTestDatabase()).url, poolMax: 1 });
stopAtEnd(() => database.close());

test('ids made in SQL are TypeIDs of a UUIDv7, unique, and sort among those made in Node', async () => {
  const before = newId('delivery');
  const made = newIdInSql('delivery');
  const rows = await database.sql.$queryRaw<{ id: string }[]>`SELECT ${made} AS id FROM generate_series(1, 2000)`;
  const ids = rows.map(({ id }) => id);
  // The last 16 characters: 1 with the version, 2 random ones, 1 with the variant, 12 random ones.
  for (const id of ids)
    expect(id).toMatch(/^dlv_[0-7][0-9a-hjkmnp-tv-z]{9}[ef][0-9a-hjkmnp-tv-z]{2}[89abrstv][0-9a-hjkmnp-tv-z]{12}$/);
  expect(new Set(ids).size).toBe(ids.length);
  const timeOf = (id: string) => id.slice(ID_PREFIXES.delivery.length + 1, -16);
  for (const id of ids)
    expect([timeOf(before) <= timeOf(id), timeOf(id) <= timeOf(newId('delivery'))]).toEqual([true, true]);
  // Each random position takes many values; the first two are the two characters between version and variant.
  for (const at of [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]) {
    expect(new Set(ids.map((id) => id.at(at - 16))).size).toBeGreaterThanOrEqual(12);
  }
});
