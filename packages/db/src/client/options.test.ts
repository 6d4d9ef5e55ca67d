import { ENDPOINT_OPTIONS, ROOM_OPTIONS, type OptionTable } from '@callplane/core';
import { createTestDatabase, stopAtEnd } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { Database } from './database.js';

const database = new Database({ url: (await createTestDatabase()).url, poolMax: 1 });
stopAtEnd(() => database.close());

/** The constraint of a column as PostgreSQL prints it. */
function constraintOf(option: OptionTable[string]): string | null {
  const { column } = option;
  if (!('texts' in option) && option.type !== 'integer') return null;
  if (option.type === 'boolean' || option.type === 'recording') return null;
  if (option.type === 'integer') return `CHECK (((${column} >= ${option.min}) AND (${column} <= ${option.max})))`;
  const values = Object.keys(option.texts).map((value) => `'${value}'::text`);
  return `CHECK ((${column} = ANY (ARRAY[${values.join(', ')}])))`;
}

test.each<[string, OptionTable]>([
  ['webhook_endpoints', ENDPOINT_OPTIONS],
  ['rooms', ROOM_OPTIONS],
])('the columns of %s have the types and the bounds of its options', async (table, options) => {
  for (const option of Object.values(options)) {
    const [column] = await database.sql.$queryRaw<{ type: string; nullable: string; constraint: string | null }[]>`
      SELECT data_type AS type, is_nullable AS nullable,
        (SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = ${`${table}_${option.column}`}::text) AS "constraint"
      FROM information_schema.columns WHERE table_name = ${table}::text AND column_name = ${option.column}::text`;
    expect(column).toEqual({
      type: {
        boolean: 'boolean',
        choice: 'text',
        integer: 'integer',
        recording: 'jsonb',
        headers: 'jsonb',
        filter: 'jsonb',
      }[option.type],
      nullable: option.default === null ? 'YES' : 'NO',
      constraint: constraintOf(option),
    });
  }
});
