import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import {
  ColumnTypeEnum,
  type SqlDriverAdapter,
  type SqlMigrationAwareDriverAdapterFactory,
} from '@prisma/driver-adapter-utils';
import pg from 'pg';
import { KEEP_ALIVE, setKeepAlives, withConnection, type ConnectionFields } from '../database/connection.js';
import { runScript, type ScriptOptions } from '../scripts/run-script.js';

/** The pool waits for `onConnect`, although its types do not say so. */
const POOL_KEEP_ALIVE = { ...KEEP_ALIVE, onConnect: setKeepAlives };
/** PostgreSQL's internal type "char", which the system catalog uses and Prisma's adapter does not support. */
const OID_CHAR = 18;
const OID_TEXT = 25;

/** Connects the schema engine to PostgreSQL: Prisma's own adapter (7.10.0), corrected for migrations. */
export interface EngineAdapters extends SqlMigrationAwareDriverAdapterFactory {
  /** Closes all open adapters. The engine never disposes of its adapters, so its session would outlive it. */
  close(): Promise<void>;
}

/** The scripts that the engine runs as migrations, and how. */
export interface MigrationScripts extends ScriptOptions {
  readonly migrations: readonly { readonly name: string; readonly script: string }[];
}

export function engineAdapters(fields: ConnectionFields, scripts: MigrationScripts): EngineAdapters {
  const open = new Set<() => Promise<void>>();
  const connect = async (database: ConnectionFields, onDisposed: () => Promise<void>): Promise<SqlDriverAdapter> => {
    // One connection, because the engine's advisory lock belongs to a session. UTC, because Prisma's adapter writes and
    // reads timestamps without a time zone.
    const pool = new pg.Pool({ ...database, ...POOL_KEEP_ALIVE, max: 1, options: '-c TimeZone=UTC' });
    // If an idle connection is lost, the next statement on it fails. Without a listener, the event would end the
    // process.
    pool.on('error', () => undefined);
    const dispose = async (): Promise<void> => {
      if (!open.delete(dispose)) return;
      // The pool closes first: PostgreSQL cannot drop a database that has open connections.
      await pool.end();
      await onDisposed();
    };
    open.add(dispose);
    return adapterFor(pool, scripts, dispose);
  };
  return {
    provider: 'postgres',
    adapterName: '@prisma/adapter-pg',
    connect: () => connect(fields, () => Promise.resolve()),
    // In Prisma's own adapter the connection string overrides the name of the shadow database, so it writes into the
    // main database.
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

async function adapterFor(
  pool: pg.Pool,
  scripts: MigrationScripts,
  dispose: () => Promise<void>,
): Promise<SqlDriverAdapter> {
  const send = pool.query.bind(pool) as (query: string | pg.QueryConfig) => Promise<pg.QueryResult>;
  let lost: ConnectionLost | undefined;
  // After a script has lost its connection, the engine would record on a new one that the migration has failed. Without
  // that record the migration counts as interrupted, and the next migrator goes on with it.
  const runQuery: typeof send = async (query) => {
    if (lost !== undefined) throw lost.cause;
    return send(query);
  };
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
    // This pool runs one statement at a time, so `charColumns` belongs to this result.
    queryRaw: async (query: Parameters<typeof queryRaw>[0]) => {
      const result = await queryRaw(query);
      for (const index of charColumns) result.columnTypes[index] = ColumnTypeEnum.Character;
      return result;
    },
    // Sends other scripts than migrations as one query, which PostgreSQL runs as one transaction. Prisma's own adapter
    // splits them at every semicolon, also inside string literals.
    executeScript: async (script: string) => {
      const migration = scripts.migrations.find((one) => one.script === script);
      try {
        if (migration === undefined) await runQuery(script);
        else await onConnection(pool, (client) => runScript(client, migration, scripts));
      } catch (error) {
        if (error instanceof ConnectionLost) lost = error;
        (adapter as unknown as { onError(error: unknown): never }).onError(lost?.cause ?? error);
      }
    },
    dispose,
  });
}

/** The connection of a script could not be opened, or failed before the script was over. `cause` tells why. */
class ConnectionLost extends Error {
  override readonly cause: Error;

  constructor(cause: Error) {
    super('the connection of a migration was lost');
    this.cause = cause;
  }
}

/**
 * Runs `work` on the only connection of the pool.
 * @throws ConnectionLost
 */
async function onConnection(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect().catch((error: unknown) => {
    throw new ConnectionLost(error as Error);
  });
  let failure: Error | undefined;
  // Without a listener, the failure of a connection that is in use would end the process.
  const onFailure = (error: Error): void => void (failure ??= error);
  client.on('error', onFailure);
  try {
    await work(client);
  } catch (error) {
    // `work` has tried to release its lock after the error, so a connection that was lost has reported its failure.
    if (failure !== undefined) throw new ConnectionLost(error as Error);
    throw error;
  } finally {
    client.off('error', onFailure);
    client.release(failure);
  }
}

function execute(fields: ConnectionFields, statement: string): Promise<void> {
  return withConnection(fields, async (client) => {
    await client.query(statement);
  });
}
