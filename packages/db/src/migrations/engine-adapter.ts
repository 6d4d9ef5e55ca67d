import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import {
  ColumnTypeEnum,
  type SqlDriverAdapter,
  type SqlMigrationAwareDriverAdapterFactory,
} from '@prisma/driver-adapter-utils';
import pg from 'pg';
import { withConnection, type ConnectionFields } from './connection.js';

/** PostgreSQL's internal type "char", which the catalogue has and Prisma's adapter does not know. */
const OID_CHAR = 18;
const OID_TEXT = 25;

/**
 * The schema engine's way to PostgreSQL: Prisma's own adapter (7.10.0) made fit for migrations.
 */
export interface EngineAdapters extends SqlMigrationAwareDriverAdapterFactory {
  /** Closes what is open. The engine never disposes of its adapters: its session would outlive it. */
  close(): Promise<void>;
}

export function engineAdapters(fields: ConnectionFields): EngineAdapters {
  const open = new Set<() => Promise<void>>();
  const connect = async (database: ConnectionFields, onDisposed: () => Promise<void>): Promise<SqlDriverAdapter> => {
    // One connection: the engine's advisory lock belongs to a session.
    // UTC, because Prisma's adapter takes and gives timestamps without a zone.
    const pool = new pg.Pool({ ...database, max: 1, options: '-c TimeZone=UTC' });
    // A connection that is lost while idle fails the next statement; unheard, the event would end the process.
    pool.on('error', () => undefined);
    const dispose = async (): Promise<void> => {
      if (!open.delete(dispose)) return;
      // In this order: a database cannot be dropped while somebody is connected to it.
      await pool.end();
      await onDisposed();
    };
    open.add(dispose);
    return adapterFor(pool, dispose);
  };
  return {
    provider: 'postgres',
    adapterName: '@prisma/adapter-pg',
    connect: () => connect(fields, () => Promise.resolve()),
    // Prisma's own gives a connection string precedence over the shadow's name, and so writes into the main database.
    connectToShadowDb: async () => {
      const name = `prisma_migrate_shadow_db_${randomUUID()}`;
      await execute(fields, `CREATE DATABASE "${name}"`);
      return connect({ ...fields, database: name }, () =>
        execute(fields, `DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`),
      );
    },
    close: async () => {
      for (const dispose of [...open]) await dispose();
    },
  };
}

async function adapterFor(pool: pg.Pool, dispose: () => Promise<void>): Promise<SqlDriverAdapter> {
  const runQuery = pool.query.bind(pool) as (query: string | pg.QueryConfig) => Promise<pg.QueryResult>;
  let charColumns: number[] = [];
  const runWithoutChar = async (query: pg.QueryConfig): Promise<pg.QueryResult> => {
    const result = await runQuery(query);
    charColumns = [];
    for (const [index, field] of result.fields.entries()) {
      if (field.dataTypeID !== OID_CHAR) continue;
      field.dataTypeID = OID_TEXT;
      charColumns.push(index);
    }
    return result;
  };
  pool.query = runWithoutChar as typeof pool.query;

  const adapter = await new PrismaPg(pool).connect();
  const queryRaw = adapter.queryRaw.bind(adapter);
  return Object.assign(adapter, {
    // One statement at a time runs on this pool, so the columns noted are those of this very result.
    queryRaw: async (query: Parameters<typeof queryRaw>[0]) => {
      const result = await queryRaw(query);
      for (const index of charColumns) result.columnTypes[index] = ColumnTypeEnum.Character;
      return result;
    },
    // As one query, which PostgreSQL makes one transaction of; Prisma's own splits at every semicolon, in text also.
    executeScript: async (script: string) => {
      try {
        await runQuery(script);
      } catch (error) {
        (adapter as unknown as { onError(error: unknown): never }).onError(error);
      }
    },
    dispose,
  });
}

function execute(fields: ConnectionFields, statement: string): Promise<void> {
  return withConnection(fields, async (client) => {
    await client.query(statement);
  });
}
