import { isDatabaseUnavailable, MigrationError } from '@callplane/db';
import { ConfigurationError, redactText } from '@callplane/runtime';

/** Wrong input: the message says what to do. Exit code 2. */
export class UsageError extends Error {}

/** The input is right and the state of things forbids it, or a check has found something. Exit code 1. */
export class CommandError extends Error {}

export interface Failure {
  exitCode: 1 | 2;
  /** One line, without secrets. */
  line: string;
}

/** PostgreSQL: the database, or the role, is not there; the password is wrong; a table is not there. */
const SQL_STATE_HINTS: Readonly<Record<string, string>> = {
  '3D000': 'The database that DATABASE_URL names does not exist.',
  '28P01': 'PostgreSQL refuses the user or password in DATABASE_URL.',
  '28000': 'PostgreSQL refuses the user in DATABASE_URL.',
  '42P01': 'The database lacks tables of this version: run "rtc db migrate" first.',
};
/** The same, as Prisma's model API says it. */
const PRISMA_HINTS: Readonly<Record<string, string>> = {
  P1003: '3D000',
  P1000: '28P01',
  P1010: '28000',
  P2021: '42P01',
  P2022: '42P01',
};

export function failureOf(error: unknown): Failure {
  // Its problems name no secret, and redaction would take the password out of their example.
  if (error instanceof ConfigurationError) return { exitCode: 2, line: error.problems.join('; ') };
  const { exitCode, message } = classify(error);
  return { exitCode, line: redactText(message.trim().replaceAll(/\s*\n\s*/g, ' ')) };
}

function classify(error: unknown): { exitCode: 1 | 2; message: string } {
  if (error instanceof UsageError) return { exitCode: 2, message: error.message };
  if (error instanceof CommandError || error instanceof MigrationError) return { exitCode: 1, message: error.message };
  if (isDatabaseUnavailable(error)) {
    return { exitCode: 1, message: 'PostgreSQL cannot be reached: check that it runs and that DATABASE_URL is right.' };
  }
  // node-postgres, on a URL that Node cannot take apart; Prisma puts its own words in front.
  if (messageOf(error).endsWith('Invalid URL')) {
    return { exitCode: 2, message: 'DATABASE_URL is not a valid URL: escape special characters, such as %40 for @.' };
  }
  return { exitCode: 1, message: hintFor(error) ?? `Unexpected: ${messageOf(error)}` };
}

/** Looks through Prisma's wrappers down to PostgreSQL's own code. */
function hintFor(error: unknown, depth = 0): string | undefined {
  if (typeof error !== 'object' || error === null || depth > 6) return undefined;
  const { code, originalCode, cause, meta } = error as Record<string, unknown>;
  for (const candidate of [originalCode, code]) {
    if (typeof candidate !== 'string') continue;
    const hint = SQL_STATE_HINTS[PRISMA_HINTS[candidate] ?? candidate];
    if (hint !== undefined) return hint;
  }
  return (
    hintFor(cause, depth + 1) ??
    hintFor((meta as { driverAdapterError?: unknown } | undefined)?.driverAdapterError, depth + 1)
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
