import type { Database } from '../client/database.js';
import { isOutOfTime } from '../client/unavailable.js';
import { Prisma } from '../generated/client.js';
import { INVARIANTS, type Invariant } from './invariants.js';

export interface InvariantResult {
  invariant: Pick<Invariant, 'name' | 'sentence' | 'subject'>;
  /** Number of rows that were looked at; null if PostgreSQL cancelled the query because it took too long. */
  checked: number | null;
  broken: number;
  ids: string[];
}

const IDS_MAX = 10;

const TABLES: Record<Invariant['subject'], Prisma.Sql> = {
  rooms: Prisma.sql`rooms`,
  participants: Prisma.sql`participants`,
  operations: Prisma.sql`runtime_operations`,
  events: Prisma.sql`events`,
  deliveries: Prisma.sql`webhook_deliveries`,
};

/** With index scans and nested loops alone, the cost depends on the rows that are looked at, not on the tables. */
export const SETTINGS: readonly Prisma.Sql[] = [
  Prisma.sql`SET TRANSACTION READ ONLY`,
  Prisma.sql`SET LOCAL enable_seqscan = off`,
  Prisma.sql`SET LOCAL enable_hashjoin = off`,
  Prisma.sql`SET LOCAL enable_mergejoin = off`,
];

export function queryOf({ subject, broken }: Invariant, newest: number): Prisma.Sql {
  return Prisma.sql`
    WITH newest AS MATERIALIZED (SELECT id FROM ${TABLES[subject]} ORDER BY id DESC LIMIT ${newest}::int),
    broken AS MATERIALIZED (${broken})
    SELECT (SELECT count(*)::int FROM newest) AS checked, (SELECT count(*)::int FROM broken) AS broken,
      ARRAY(SELECT id FROM broken ORDER BY id LIMIT ${IDS_MAX}::int) AS ids`;
}

/**
 * Checks every invariant on the newest rows, one read-only transaction each, so that no snapshot is held for longer than
 * one query. The cost does not grow with the tables.
 * @param newest how many rows each invariant looks at.
 * @throws if PostgreSQL is unavailable.
 */
export async function checkInvariants(database: Database, newest: number): Promise<InvariantResult[]> {
  const results: InvariantResult[] = [];
  for (const invariant of INVARIANTS) results.push(await check(database, invariant, newest));
  return results;
}

async function check(database: Database, invariant: Invariant, newest: number): Promise<InvariantResult> {
  try {
    return await database.transaction(async (sql) => {
      for (const setting of SETTINGS) await sql.$executeRaw`${setting}`;
      const [row] = await sql.$queryRaw<
        [Omit<InvariantResult, 'invariant'>]
      >`SELECT * FROM (${queryOf(invariant, newest)}) result`;
      return { invariant, ...row };
    });
  } catch (error) {
    if (!isOutOfTime(error)) throw error;
    return { invariant, checked: null, broken: 0, ids: [] };
  }
}
