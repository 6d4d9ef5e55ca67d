import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@callplane/testing';
import { expect, test } from '@jest/globals';

const MIGRATIONS = join(repositoryRoot, 'prisma', 'migrations');

/**
 * Statements that hold no strong lock for long: they neither read nor write the rows of a table that requests use, or
 * they do it under a weak lock. A default must be the same for all rows, so that PostgreSQL stores it once.
 */
const SHORT: readonly RegExp[] = [
  /^CREATE TABLE \w+ /,
  /^(CREATE (UNIQUE )?|DROP )INDEX CONCURRENTLY IF (NOT )?EXISTS /,
  /^ALTER TABLE \w+ ADD COLUMN \w+ \w+(\(\d+\))?(\[\])?( COLLATE "C")?( NOT NULL)?( DEFAULT ('[^']*'|-?\d+|true|false|now\(\)))?$/i,
  /^ALTER TABLE \w+ ADD CONSTRAINT \w+ (CHECK|FOREIGN KEY) .* NOT VALID$/,
  /^ALTER TABLE \w+ (VALIDATE|DROP) CONSTRAINT \w+$/,
  /^ALTER TABLE \w+ (DROP COLUMN \w+|ALTER COLUMN \w+ (DROP NOT NULL|(SET|DROP) DEFAULT.*))$/,
];

/** The statements for which requests may wait long, unless the header states `long lock:` with a reason. */
function longLocks(script: string): string[] {
  if (/^-- long lock: \S/m.test(script)) return [];
  const statements = script
    .replaceAll(/--.*$/gm, '')
    .split(';')
    .map((statement) => statement.replaceAll(/\s+/g, ' ').trim())
    .filter((statement) => statement !== '');
  const created = statements.flatMap((one) => /^CREATE TABLE (\w+)/.exec(one)?.[1] ?? []);
  const isOfNewTable = (one: string): boolean =>
    created.includes(/^(?:ALTER TABLE|CREATE (?:UNIQUE )?INDEX \w+ ON) (\w+)/.exec(one)?.[1] ?? '');
  const locked = statements
    .filter((one) => !one.includes(' VALIDATE '))
    .flatMap((one) => [...one.matchAll(/(?:^ALTER TABLE|^DROP TABLE| REFERENCES) (\w+)/g)].map(([, table]) => table!))
    .filter((table) => !created.includes(table));
  // A transaction that holds the lock of one table may wait for the lock of another.
  const tables = new Set(locked).size > 1 ? [`locks of ${[...new Set(locked)].join(' and ')}`] : [];
  return [...statements.filter((one) => !isOfNewTable(one) && !SHORT.some((short) => short.test(one))), ...tables];
}

test('every migration after the first one lets requests pass, or states `long lock:` with a reason', () => {
  const names = readdirSync(MIGRATIONS, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? entry.name : [],
  );
  for (const name of names.sort().slice(1)) {
    expect([name, longLocks(readFileSync(join(MIGRATIONS, name, 'migration.sql'), 'utf8'))]).toEqual([name, []]);
  }
});

test.each([
  'CREATE INDEX a_idx ON rooms (name)',
  'DROP INDEX rooms_name_idx',
  'CREATE INDEX CONCURRENTLY a ON rooms (a)',
  'ALTER TABLE rooms ADD CONSTRAINT n CHECK (n > 0)',
  'ALTER TABLE rooms ADD COLUMN n INTEGER CHECK (n > 0)',
  'ALTER TABLE rooms ADD COLUMN n UUID NOT NULL DEFAULT gen_random_uuid()',
  'ALTER TABLE rooms ADD COLUMN n BIGINT GENERATED ALWAYS AS (1) STORED',
  'ALTER TABLE rooms ALTER COLUMN name SET NOT NULL',
  "UPDATE rooms SET name = 'x'",
  'BEGIN',
  'ALTER TABLE rooms ADD COLUMN a TEXT; ALTER TABLE participants ADD COLUMN a TEXT',
  'ALTER TABLE rooms ADD COLUMN a TEXT; CREATE TABLE t (id TEXT REFERENCES events (id))',
])('refuses without a reason: %s', (sql) => {
  expect(longLocks(`-- Why: so.\n\n${sql};`)).not.toEqual([]);
  expect(longLocks(`-- Why: so.\n-- long lock: a handful of rows\n\n${sql};`)).toEqual([]);
});

test.each([
  'ALTER TABLE rooms ADD COLUMN n INTEGER NOT NULL DEFAULT -1; ALTER TABLE rooms ADD COLUMN m TEXT[]',
  "ALTER TABLE rooms ADD COLUMN a TIMESTAMPTZ(3) NOT NULL DEFAULT now(); ALTER TABLE rooms ADD COLUMN b JSONB DEFAULT '{}'",
  'ALTER TABLE rooms ADD CONSTRAINT r CHECK (n IN (1, 2)) NOT VALID',
  'ALTER TABLE rooms VALIDATE CONSTRAINT c; ALTER TABLE participants VALIDATE CONSTRAINT d',
  'CREATE TABLE t (id TEXT PRIMARY KEY, at TIMESTAMPTZ DEFAULT clock_timestamp()); CREATE INDEX t_idx ON t (at)',
  'CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS a ON rooms (a)',
  'DROP INDEX CONCURRENTLY IF EXISTS a',
])('accepts: %s', (sql) => expect(longLocks(sql)).toEqual([]));
