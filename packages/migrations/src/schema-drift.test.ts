import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createTestDatabase, repositoryRoot } from '@callplane/testing';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';

/**
 * Tests that the migrations make the tables that schema.prisma describes, from which the client is generated. The schema
 * language cannot express partial indexes, indexes of expressions, check constraints and collations.
 */

interface Field {
  column: string;
  /** As PostgreSQL writes it; undefined for a relation. */
  type: string | undefined;
  line: string;
}

interface Model {
  table: string;
  body: string;
  fields: Map<string, Field>;
}

const TYPES: Record<string, string> = {
  BigInt: 'bigint',
  Boolean: 'boolean',
  Bytes: 'bytea',
  DateTime: 'timestamp with time zone',
  Int: 'integer',
  Json: 'jsonb',
  String: 'text',
};

const schema = readFileSync(join(repositoryRoot, 'prisma', 'schema.prisma'), 'utf8');
const models = new Map(
  [...schema.matchAll(/^model (\w+) \{\n([\s\S]*?)^\}/gm)].map((found) => [found[1]!, toModel(found[2]!)]),
);
const all = [...models.values()];

let client: pg.Client;
beforeAll(async () => {
  client = new pg.Client((await createTestDatabase()).url);
  await client.connect();
});
afterAll(() => client.end());

test('each column has the type, the nullability and the default of its field', async () => {
  const rows = await linesOf(`
    SELECT concat_ws(' ', attrelid::regclass || '.' || attname, format_type(atttypid, atttypmod),
      CASE WHEN attnotnull AND attndims = 0 THEN 'NOT NULL' END, 'DEFAULT ' || pg_get_expr(adbin, adrelid))
    FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attrelid IN (SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace)
      AND attnum > 0 AND NOT attisdropped AND attrelid <> '_prisma_migrations'::regclass`);
  const expected = all.flatMap(({ table, fields }) =>
    [...fields.values()].flatMap(({ column, type, line }) => {
      if (type === undefined) return [];
      const isRequired = !/^\w+\s+\w+(\?|\[)/.test(line);
      return [`${table}.${column} ${type}${isRequired ? ' NOT NULL' : ''}${defaultOf(line, type)}`];
    }),
  );
  expect(rows).toEqual(expected.sort());
});

test('each index without a condition, expressions and collations is in the schema, and the reverse', async () => {
  const rows = await linesOf(`
    SELECT concat_ws(' ', CASE WHEN indisunique THEN 'unique' END, split_part(pg_get_indexdef(indexrelid), ' ON public.', 2))
    FROM pg_index
    WHERE indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)
      AND indpred IS NULL AND indexprs IS NULL AND pg_get_indexdef(indexrelid) NOT LIKE '%COLLATE%'
      AND indrelid <> '_prisma_migrations'::regclass`);
  expect(rows).toEqual(all.flatMap(indexesOf).sort());
});

test('each relation has its foreign key', async () => {
  const rows = await linesOf(
    `SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'`,
  );
  const relation =
    /^\w+\s+(\w+)\??\s+@relation\(fields: \[(\w+)\], references: \[id\], onDelete: (\w+), onUpdate: (\w+)\)/;
  const expected = all.flatMap(({ table, fields }) =>
    [...fields.values()].flatMap(({ line }) => {
      const [, other, field, onDelete, onUpdate] = relation.exec(line) ?? [];
      if (field === undefined) return [];
      const key = `FOREIGN KEY (${fields.get(field)!.column}) REFERENCES ${models.get(other!)!.table}(id)`;
      return [`${table} ${key} ON UPDATE ${onUpdate!.toUpperCase()} ON DELETE ${onDelete!.toUpperCase()}`];
    }),
  );
  expect(rows).toEqual(expected.sort());
});

function toModel(body: string): Model {
  const lines = [...body.matchAll(/^ {2}(\w+)\s+(\w+)(\[\])?.*$/gm)];
  const fields = lines.map(([text, name, type, isList]): [string, Field] => {
    const line = text.trim();
    const [, native, digits] = /@db\.(\w+)(\(\d\))?/.exec(line) ?? [];
    const known = native === 'Uuid' || native === 'Date' ? native.toLowerCase() : TYPES[type!];
    const sized = digits === undefined ? known : known?.replace('timestamp', `timestamp${digits}`);
    return [name!, { column: inQuotes(line, ' @map') ?? name!, type: sized && sized + (isList ?? ''), line }];
  });
  return { table: inQuotes(body, '@@map')!, body, fields: new Map(fields) };
}

function inQuotes(text: string, attribute: string): string | undefined {
  return new RegExp(String.raw`${attribute}\("([^"]*)"\)`).exec(text)?.[1];
}

function defaultOf(line: string, type: string): string {
  const generated = /@default\(dbgenerated\("([^"]*)"\)\)/.exec(line)?.[1];
  if (generated !== undefined) return ` DEFAULT ${generated}`;
  const value = /@default\(([^)]*)\)/.exec(line)?.[1];
  if (value === undefined) return '';
  if (value === '[]') return ` DEFAULT '{}'::${type}`;
  return ` DEFAULT ${value.startsWith('"') ? `'${value.slice(1, -1)}'::${type}` : value}`;
}

function indexesOf({ table, body, fields }: Model): string[] {
  const index = (kind: string, columns: string) =>
    `${kind === 'index' ? '' : 'unique '}${table} USING btree (${columns})`;
  const ofFields = [...fields.values()].flatMap(({ column, line }) => {
    const kind = / @(id|unique)\b/.exec(line)?.[1];
    return kind === undefined ? [] : [index(kind, column)];
  });
  const ofModel = [...body.matchAll(/@@(id|unique|index)\(\[(.*)\]\)/g)].map(([, kind, list]) => {
    const columns = list!
      .replaceAll('(sort: Desc)', ' DESC')
      .replaceAll(/[a-z]\w*/g, (name) => fields.get(name)!.column);
    return index(kind!, columns);
  });
  return [...ofFields, ...ofModel];
}

async function linesOf(statement: string): Promise<string[]> {
  const { rows } = await client.query<[string]>({ text: statement, rowMode: 'array' });
  return rows.map(([line]) => line).sort();
}
