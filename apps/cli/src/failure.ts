import { isDatabaseUnavailable, isRefusedTls } from '@callplane/db';
import { MigrationError } from '@callplane/migrations';
import { ConfigurationError, redactText } from '@callplane/runtime';
import { printable } from './terminal.js';

/** Invalid input. The message says how to correct it. Exit code 2. */
export class UsageError extends Error {}

/** The input is valid, but the current state forbids the command, or a check found a problem. Exit code 1. */
export class CommandError extends Error {}

export interface Failure {
  exitCode: 1 | 2;
  /** One line of text without secrets. */
  line: string;
}

const LOCAL_START_GONE =
  'PostgreSQL of the local start does not answer: start it again with "npm start" in another terminal.';

/** Hints by SQLSTATE of PostgreSQL: unknown database or role, wrong password, missing table. */
const SQL_STATE_HINTS: Readonly<Record<string, string>> = {
  '3D000': 'The database that DATABASE_URL names does not exist.',
  '28P01': 'PostgreSQL refuses the user or password in DATABASE_URL.',
  '28000': 'PostgreSQL refuses the user in DATABASE_URL.',
  '42P01': 'The database lacks tables of this version: run "rtc db migrate" first.',
};
/** The SQLSTATE for each error code of Prisma's model API. */
const PRISMA_HINTS: Readonly<Record<string, string>> = {
  P1003: '3D000',
  P1000: '28P01',
  P1010: '28000',
  P2021: '42P01',
  P2022: '42P01',
};

/** @param isLocal whether the command uses the database of the local start. */
export function failureOf(error: unknown, isLocal = false): Failure {
  // Do not redact configuration errors: they contain no secrets, and redaction would remove the password from the
  // example URL.
  if (error instanceof ConfigurationError) return { exitCode: 2, line: printable(error.problems.join('; ')) };
  const { exitCode, message } = classify(error, isLocal);
  return { exitCode, line: printable(redactText(message.trim().replaceAll(/\s*\n\s*/g, ' '))) };
}

function classify(error: unknown, isLocal: boolean): { exitCode: 1 | 2; message: string } {
  if (error instanceof UsageError) return { exitCode: 2, message: error.message };
  if (error instanceof CommandError || error instanceof MigrationError) return { exitCode: 1, message: error.message };
  // Refused logins and certificates count as outages for apps, and have a hint of their own here.
  const hint = hintFor(error);
  if (hint !== undefined) return { exitCode: 1, message: hint };
  if (isDatabaseUnavailable(error)) {
    if (isLocal) return { exitCode: 1, message: LOCAL_START_GONE };
    return {
      exitCode: 1,
      message: 'PostgreSQL is unreachable or read-only. Check that it runs and that DATABASE_URL is right.',
    };
  }
  return { exitCode: 1, message: `Unexpected: ${error instanceof Error ? error.message : String(error)}` };
}

/** Searches Prisma's wrapped errors for a code with a hint. */
function hintFor(error: unknown, depth = 0): string | undefined {
  if (typeof error !== 'object' || error === null || depth > 6) return undefined;
  if (isRefusedTls(error)) {
    return 'PostgreSQL has no TLS, or a certificate that is not accepted. Check sslmode in DATABASE_URL and the file of the CA.';
  }
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
