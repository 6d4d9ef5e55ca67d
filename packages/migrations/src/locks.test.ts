import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';

const MIGRATIONS = join(repositoryRoot, 'prisma', 'migrations');

/**
 * Comments, literals, quoted names and dollar-quoted bodies, whose semicolons end no statement; a semicolon; anything
 * else. Escape strings (`E'\''`) are not supported.
 */
const TOKEN = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$\w*\$)[\s\S]*?\1|;|[^-/'"$;]+|[\s\S]/g;

/** Statements that hold a strong lock for long, whatever table they are about. */
const STATEMENTS: readonly (readonly [RegExp, string])[] = [
  [/\bINDEX\s+CONCURRENTLY\s+(?!IF\b)/i, 'cannot be repeated without IF EXISTS or IF NOT EXISTS'],
  [/^DROP\s+INDEX\s+(?!CONCURRENTLY\b)/i, 'drops an index in a transaction'],
  [/^(?:BEGIN|START\s+TRANSACTION|COMMIT|ROLLBACK|SAVEPOINT)\b/i, 'has its own BEGIN or COMMIT'],
  [/^(?:LOCK|VACUUM|CLUSTER|REINDEX|REFRESH)\b/i, 'uses LOCK, VACUUM, CLUSTER, REINDEX or REFRESH'],
  [/^(?:UPDATE|DELETE|INSERT|TRUNCATE|MERGE|WITH|DO)\b/i, 'changes rows in a transaction'],
];

/** Actions of an ALTER TABLE that read, rewrite or index all rows of the table. */
const ACTIONS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:PRIMARY\s+KEY|UNIQUE|EXCLUDE)\b(?!\s+USING\s+INDEX)/i, 'builds an index in a transaction'],
  [/\b(?:CHECK|REFERENCES)\b(?![\s\S]*\bNOT\s+VALID\b)/i, 'validates a constraint in a transaction'],
  [/\bSET\s+NOT\s+NULL\b/i, 'reads all rows to forbid null'],
  [/\b(?:SMALL|BIG)?SERIAL\b|\bGENERATED\b|\bSET\s+(?:UN)?LOGGED\b|\bSET\s+TABLESPACE\b/i, 'rewrites the table'],
  [/^ALTER\s+(?:COLUMN\s+)?\S+\s+(?:SET\s+DATA\s+)?TYPE\b/i, 'rewrites the table'],
];

/** A literal or a function whose value is the same for all rows; PostgreSQL stores it once. */
const CONSTANT =
  /^(?:'|[-+]?\d|TRUE\b|FALSE\b|NULL\b|ARRAY\s*\[\s*\]|CURRENT_(?:DATE|TIMESTAMP)\b|(?:now|transaction_timestamp)\s*\(\))/i;

const NAME = String.raw`(?:ONLY\s+)?"?(\w+)"?`;

/**
 * Reasons why requests may wait long for a migration: statements that hold a strong lock while they read or write many
 * rows, or while they wait for another lock. Empty if there are none, or if the header states `long lock:` with a
 * reason.
 */
function longLocks(script: string): string[] {
  if (/^--\s*long lock:\s*\S/im.test(script)) return [];
  const statements = statementsOf(script);
  const created = new Set(statements.flatMap((one) => capturesOf(one, String.raw`^CREATE\s+TABLE\s+${IF}${NAME}`)));
  const found = statements.flatMap((one) => reasonsOf(one, created).map((reason) => `${reason}: ${shown(one)}`));
  for (const alone of [/\bINDEX\s+CONCURRENTLY\b/i, /\bVALIDATE\s+CONSTRAINT\b/i]) {
    const [other] = statements.some((one) => alone.test(one)) ? statements.filter((one) => !alone.test(one)) : [];
    if (other !== undefined) found.push(`runs beside an index or a validation: ${shown(other)}`);
  }
  const locked = [...new Set(statements.flatMap(lockedTables))].filter((table) => !created.has(table)).sort();
  return locked.length > 1 ? [...found, `locks more than one existing table: ${locked.join(', ')}`] : found;
}

const IF = String.raw`(?:IF\s+(?:NOT\s+)?EXISTS\s+)?`;

function reasonsOf(statement: string, created: ReadonlySet<string>): string[] {
  const reasons = STATEMENTS.flatMap(([pattern, reason]) => (pattern.test(statement) ? [reason] : []));
  const [indexed] = capturesOf(
    statement,
    String.raw`^CREATE\s+(?:UNIQUE\s+)?INDEX\s(?!\s*CONCURRENTLY)[^(]*?\sON\s+${NAME}`,
  );
  if (indexed !== undefined && !created.has(indexed)) reasons.push('builds an index in a transaction');
  const alter = new RegExp(String.raw`^ALTER\s+TABLE\s+${IF}${NAME}\s+([\s\S]*)$`, 'i').exec(statement);
  if (alter === null || created.has(alter[1]!) || /^VALIDATE\b/i.test(alter[2]!)) return reasons;
  return [...reasons, ...actionsOf(alter[2]!).flatMap(reasonsOfAction)];
}

function reasonsOfAction(action: string): string[] {
  // Literals may contain any word.
  const words = action.replaceAll(/'(?:[^']|'')*'/g, "''");
  const reasons = ACTIONS.flatMap(([pattern, reason]) => (pattern.test(words) ? [reason] : []));
  const value = /^ADD\s[\s\S]*?\bDEFAULT\s+([\s\S]*)$/i.exec(words)?.[1];
  return value === undefined || CONSTANT.test(value) ? reasons : [...reasons, 'rewrites the table for a default'];
}

/** Splits at the commas outside of parentheses, brackets and literals. */
function actionsOf(actions: string): string[] {
  const parts = [''];
  let depth = 0;
  for (const [token] of actions.matchAll(/'(?:[^']|'')*'|[\s\S]/g)) {
    if (token === '(' || token === '[') depth++;
    if (token === ')' || token === ']') depth--;
    if (token === ',' && depth === 0) parts.push('');
    else parts[parts.length - 1] += token;
  }
  return parts.map((part) => part.trim());
}

/** Tables on which a statement takes a lock that blocks reads or writes. */
function lockedTables(statement: string): string[] {
  if (/\bVALIDATE\s+CONSTRAINT\b/i.test(statement)) return [];
  if (!/^(?:ALTER|CREATE|DROP)\s+(?:CONSTRAINT\s+)?(?:TABLE|TRIGGER)\b/i.test(statement)) return [];
  return [
    String.raw`^(?:ALTER|DROP)\s+TABLE\s+${IF}${NAME}`,
    String.raw`\bREFERENCES\s+${NAME}`,
    String.raw`^(?:CREATE|DROP)\s+(?:CONSTRAINT\s+)?TRIGGER\b[\s\S]*?\sON\s+${NAME}`,
  ].flatMap((pattern) => capturesOf(statement, pattern));
}

function capturesOf(text: string, pattern: string): string[] {
  return [...text.matchAll(new RegExp(pattern, 'gi'))].map((match) => match[1]!);
}

function shown(statement: string): string {
  return statement.replaceAll(/\s+/g, ' ').slice(0, 120);
}

/** The statements of an SQL script, without comments and semicolons. */
function statementsOf(script: string): string[] {
  const statements = [''];
  for (const [token] of script.matchAll(TOKEN)) {
    if (token === ';') statements.push('');
    else statements[statements.length - 1] += token.startsWith('--') || token.startsWith('/*') ? ' ' : token;
  }
  return statements.map((statement) => statement.trim()).filter((statement) => statement !== '');
}

describe('migrations that run beside requests', () => {
  const names = readdirSync(MIGRATIONS, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? entry.name : [],
  );

  test.each(names)('%s holds no lock for long, or states `long lock:` with a reason in its header', (name) => {
    expect(longLocks(readFileSync(join(MIGRATIONS, name, 'migration.sql'), 'utf8'))).toEqual([]);
  });

  test.each([
    ['CREATE INDEX "a_idx" ON "rooms"("name");', 'builds an index'],
    ['CREATE UNIQUE INDEX a_idx ON rooms (name);', 'builds an index'],
    ['DROP INDEX "rooms_name_idx";', 'drops an index'],
    ['ALTER TABLE "rooms" ADD CONSTRAINT "rooms_n" CHECK ("n" > 0);', 'validates a constraint'],
    ['ALTER TABLE rooms ADD CHECK (n > 0);', 'validates a constraint'],
    ['ALTER TABLE rooms ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES environments (id);', 'validates a constraint'],
    ['ALTER TABLE rooms ADD CONSTRAINT u UNIQUE (name);', 'builds an index'],
    ['ALTER TABLE rooms ADD COLUMN n INTEGER CHECK (n > 0);', 'validates a constraint'],
    ['ALTER TABLE rooms ADD COLUMN n TEXT UNIQUE;', 'builds an index'],
    ['ALTER TABLE rooms ADD COLUMN n UUID NOT NULL DEFAULT gen_random_uuid();', 'rewrites'],
    ["ALTER TABLE rooms ADD COLUMN n TEXT DEFAULT 'a', ADD COLUMN m TEXT DEFAULT callplane_typeid('x');", 'rewrites'],
    ['ALTER TABLE rooms ADD COLUMN n BIGSERIAL;', 'rewrites'],
    ['ALTER TABLE rooms ADD COLUMN n INTEGER GENERATED ALWAYS AS (1) STORED;', 'rewrites'],
    ['ALTER TABLE rooms ALTER COLUMN name TYPE VARCHAR(9);', 'rewrites'],
    ['ALTER TABLE rooms ALTER COLUMN name SET NOT NULL;', 'reads'],
    ["UPDATE rooms SET name = 'x';", 'changes rows'],
    ['WITH gone AS (SELECT 1) DELETE FROM rooms;', 'changes rows'],
    ['ALTER TABLE rooms ADD COLUMN a TEXT; ALTER TABLE participants ADD COLUMN a TEXT;', 'participants, rooms'],
    ['ALTER TABLE rooms ADD COLUMN a TEXT; CREATE TABLE t (id TEXT REFERENCES events (id));', 'events, rooms'],
    ['LOCK TABLE rooms;', 'LOCK'],
    ['BEGIN; ALTER TABLE rooms ADD COLUMN a TEXT; COMMIT;', 'BEGIN'],
    ['CREATE INDEX CONCURRENTLY IF NOT EXISTS a ON rooms (a); ALTER TABLE rooms ADD COLUMN a TEXT;', 'beside an index'],
    ['ALTER TABLE rooms ADD CHECK (a > 0) NOT VALID; ALTER TABLE rooms VALIDATE CONSTRAINT a;', 'beside an index or a'],
    ['CREATE INDEX CONCURRENTLY a ON rooms (a);', 'IF NOT EXISTS'],
    ['DROP INDEX CONCURRENTLY a;', 'IF EXISTS'],
  ])('refuses: %s', (sql, what) => {
    expect(longLocks(`-- Why: so.\n\n${sql}`).join('\n')).toContain(what);
    expect(longLocks(`-- Why: so.\n-- long lock: a handful of rows\n\n${sql}`)).toEqual([]);
  });

  test.each([
    'ALTER TABLE rooms ADD COLUMN n INTEGER NOT NULL DEFAULT -1, ADD COLUMN m TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[];',
    "ALTER TABLE rooms ADD COLUMN a TIMESTAMPTZ(3) NOT NULL DEFAULT now(), ADD COLUMN b JSONB DEFAULT '[1, 2; 3]';",
    'ALTER TABLE rooms ADD CONSTRAINT r CHECK (n IN (1, 2)) NOT VALID, ADD COLUMN n NUMERIC(10, 2);',
    'CREATE TABLE t (id TEXT PRIMARY KEY, at TIMESTAMPTZ DEFAULT clock_timestamp()); CREATE INDEX t_idx ON t (at);',
    'CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS a ON rooms (a);',
    'DROP INDEX CONCURRENTLY IF EXISTS "a";',
    'ALTER TABLE rooms VALIDATE CONSTRAINT c; ALTER TABLE participants VALIDATE CONSTRAINT d;',
    'CREATE OR REPLACE FUNCTION f() RETURNS INT LANGUAGE plpgsql AS $$ BEGIN UPDATE rooms SET name = 1; END $$;',
  ])('accepts: %s', (sql) => expect(longLocks(sql)).toEqual([]));
});
