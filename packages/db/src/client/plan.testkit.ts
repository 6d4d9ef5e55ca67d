import { Prisma } from '../generated/client.js';
import type { Database, TypedSql } from './database.js';

/** PostgreSQL's plan for the last statement that `run` sends. Every statement gets no rows. */
export async function planOf(database: Database, run: (db: TypedSql) => PromiseLike<unknown>): Promise<string> {
  let plan: PromiseLike<{ 'QUERY PLAN': string }[]> | undefined;
  await run({
    $queryRaw<T>(query: TemplateStringsArray | Prisma.Sql, ...values: unknown[]): Promise<T> {
      const statement = query instanceof Prisma.Sql ? query : Prisma.sql(query, ...values);
      plan = database.sql.$queryRaw(Prisma.sql`EXPLAIN ${statement}`);
      return Promise.resolve([] as T);
    },
    $executeRaw: () => Promise.reject(new Error('the statement reads')),
  });
  return (await plan!).map((row) => row['QUERY PLAN']).join('\n');
}
