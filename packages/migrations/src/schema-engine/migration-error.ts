import type { ErrorRegistry } from '@prisma/driver-adapter-utils';

/** The reason for a failed migration, in one line for the operator. */
export class MigrationError extends Error {
  /** Prisma's code, such as P3009; null when there is none. */
  readonly code: string | null;

  constructor(message: string, code: string | null, cause: unknown) {
    super(message, { cause });
    this.name = 'MigrationError';
    this.code = code;
  }
}

/** Prisma: an earlier migration failed and has not been resolved. */
const FAILED_EARLIER = 'P3009';
/** Lines of the engine's messages that do not help an operator: its call trace and the name of its driver. */
const NOISE = /^(\s+\d+: |\s+at |\s+with |external connector error$|Error:$|$)/;

/**
 * Turns an error of the engine into a readable one. The engine reports an error of our adapter (a shadow database that
 * cannot be created) as a number, and the registry maps it back to the error.
 */
export function migrationError(thrown: unknown, registry: ErrorRegistry): MigrationError {
  const { message, code } = thrown as { message: string; code?: string };
  if (code === FAILED_EARLIER) {
    const name = /`(.+?)` migration/.exec(message)?.[1] ?? 'unknown';
    return new MigrationError(
      `Migration ${name} has failed earlier; look at what it left, then say so with ` +
        `"rtc db resolve ${name} --rolled-back" or "--applied".`,
      code,
      thrown,
    );
  }
  const ownId = /External error id#(\d+)/.exec(message)?.[1];
  const own = ownId === undefined ? undefined : registry.consumeError(Number(ownId))?.error;
  if (own instanceof Error) return new MigrationError(own.message, code ?? null, own);
  const text = message
    .split('\n')
    .filter((line) => !NOISE.test(line))
    .map((line) => line.trim())
    .join(' ');
  const migration = /migration_name="(.+?)"/.exec(message)?.[1];
  return new MigrationError(
    migration === undefined ? text : `Migration ${migration} failed: ${text}`,
    code ?? null,
    thrown,
  );
}
