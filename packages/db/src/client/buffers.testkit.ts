import { Prisma } from '../generated/client.js';
import type { Database, TypedSql } from './database.js';

interface Plan {
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
}

/** The buffers that all statements of `run` touch, which does not depend on the machine. It runs and is rolled back. */
export async function buffersOf(database: Database, run: (db: TypedSql) => PromiseLike<unknown>): Promise<number> {
  let buffers = 0;
  const undone = new Error('undone');
  await database
    .transaction(async (tx) => {
      const explain = async (statement: Prisma.Sql): Promise<void> => {
        await tx.$executeRaw`SAVEPOINT explained`;
        const [row] = await tx.$queryRaw<{ 'QUERY PLAN': [{ Plan: Plan }] }[]>(
          Prisma.sql`EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ${statement}`,
        );
        await tx.$executeRaw`ROLLBACK TO SAVEPOINT explained`;
        const [{ Plan: plan }] = row!['QUERY PLAN'];
        buffers += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
      };
      const sqlOf = (query: TemplateStringsArray | Prisma.Sql, values: unknown[]) =>
        query instanceof Prisma.Sql ? query : Prisma.sql(query, ...values);
      await run({
        async $queryRaw<T>(query: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): Promise<T> {
          await explain(sqlOf(query, values));
          return tx.$queryRaw<T>(query, ...values);
        },
        async $executeRaw(query: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): Promise<number> {
          await explain(sqlOf(query, values));
          return tx.$executeRaw(query, ...values);
        },
      });
      throw undone;
    })
    .catch((error: unknown) => {
      if (error !== undone) throw error;
    });
  return buffers;
}
