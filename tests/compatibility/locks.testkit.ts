import { statementsOf } from '../../packages/migrations/src/scripts/statements.js';
import { stepsOf } from '../../packages/migrations/src/scripts/steps.js';

/** Statements that hold a strong lock for long, whatever table they are about. */
const STATEMENTS: readonly (readonly [RegExp, string])[] = [
  [/^CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+IF\b/i, 'IF NOT EXISTS keeps an invalid index of a killed build'],
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
export function longLocks(script: string): string[] {
  if (/^--\s*long lock:\s*\S/im.test(script)) return [];
  const statements = statementsOf(script);
  const created = new Set(statements.flatMap((one) => capturesOf(one, String.raw`^CREATE\s+TABLE\s+${IF}${NAME}`)));
  const found = statements.flatMap((one) => reasonsOf(one, created).map((reason) => `${reason}: ${shown(one)}`));
  try {
    if (stepsOf(script) !== null) return found;
  } catch (error) {
    return [...found, (error as Error).message];
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
