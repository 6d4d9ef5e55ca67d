import { Prisma } from '../generated/client.js';

/**
 * Array parameters for `unnest`, as subqueries: they hide the lengths from the planner. PostgreSQL would compare a plan
 * for the present lengths with the generic plan for ten elements, find the former cheaper, and plan the statement anew
 * at each execution. That costs up to 0.6 ms (measured), more than the statement itself.
 */
export const texts = (values: readonly (string | null)[]): Prisma.Sql => Prisma.sql`(SELECT ${values}::text[])`;
export const ints = (values: readonly (number | null)[]): Prisma.Sql => Prisma.sql`(SELECT ${values}::int[])`;
