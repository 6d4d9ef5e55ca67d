import { stopAtEnd } from '@callplane/testing';
import pg from 'pg';
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

/**
 * Opens a transaction with a snapshot, as `pg_dump` does. It locks no table, which would block the next test.
 * @returns its connection: `ROLLBACK` releases the snapshot.
 */
export async function holdSnapshot(url: string): Promise<pg.Client> {
  const holder = new pg.Client({ connectionString: url });
  await holder.connect();
  stopAtEnd(() => holder.end());
  await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await holder.query('SELECT 1 FROM projects');
  return holder;
}
