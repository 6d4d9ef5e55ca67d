import { Prisma } from '../generated/client.js';

/**
 * Words of a vocabulary of core as SQL literals, such as `'created', 'active'`. Literals instead of a parameter, so that
 * PostgreSQL plans with them.
 * @param words constants, never external input: they go into the SQL unescaped.
 */
export function literals(words: readonly string[]): Prisma.Sql {
  return Prisma.raw(words.map((word) => `'${word}'`).join(', '));
}
