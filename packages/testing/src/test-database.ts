import { randomBytes } from 'node:crypto';
import { applyMigrations, grantGatewayRights } from '@callplane/migrations';
import pg from 'pg';

/** An empty, migrated database. */
export interface TestDatabase {
  /** The superuser's URL, so that tests can also terminate connections. */
  readonly url: string;
  /** Disconnects all clients and drops the database. Optional: the run's server and its data are removed at the end. */
  drop(): Promise<void>;
}

/**
 * Deadlines for the database of a test that is not about deadlines. On a busy machine a statement may wait longer than
 * in production, for a connection or for the processor.
 */
export const PATIENT_DEADLINES = { connectMs: 60_000, statementMs: 60_000, transactionMs: 60_000 };

/** The same for the connection of a `JobProducer`: as long as an unanswered connection stays open. */
export const PATIENT_REDIS = { commandTimeout: 5000 };

/** The gateway's role on every PostgreSQL of the tests. */
export const GATEWAY = { username: 'callplane_gateway', password: 'test-gateway-password' };

const TEMPLATE = 'callplane_template';

/**
 * Creates a database on the run's shared PostgreSQL, copied from a migrated template in about 50 ms.
 * @throws Error if Jest runs without the project's configuration, because then there is no server to use.
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  const adminUrl = process.env['TEST_POSTGRES_URL'];
  if (adminUrl === undefined) throw new Error('TEST_POSTGRES_URL is not set: run tests with `npm test -- <path>`');
  return newDatabase(adminUrl, `TEMPLATE ${TEMPLATE}`);
}

/** Creates a migrated database on a server that started from the data of the run's shared one. */
export async function createDatabase(adminUrl: string): Promise<TestDatabase> {
  return newDatabase(adminUrl, `TEMPLATE ${TEMPLATE}`);
}

/** Migrates the template that createTestDatabase() copies; Jest's global setup calls it once per run. */
export async function createTemplate(adminUrl: string): Promise<void> {
  await asAdmin(adminUrl, `CREATE DATABASE ${TEMPLATE}`);
  await migrate(databaseUrl(adminUrl, TEMPLATE));
  // PostgreSQL cannot copy a database that has connections, so the template refuses them from here on.
  await asAdmin(adminUrl, `ALTER DATABASE ${TEMPLATE} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false`);
}

async function newDatabase(adminUrl: string, options: string): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await asAdmin(adminUrl, `CREATE DATABASE ${name} ${options}`);
  return {
    url: databaseUrl(adminUrl, name),
    drop: () => asAdmin(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

async function asAdmin(adminUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

function databaseUrl(adminUrl: string, name: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** Applies the project's migrations and creates the gateway's role. */
async function migrate(databaseUrl: string): Promise<void> {
  await applyMigrations({ databaseUrl });
  await grantGatewayRights({ databaseUrl }, gatewayUrlOf(databaseUrl));
}

/** The same database with the gateway's production rights: no access to keys and secrets. */
export function gatewayUrlOf(databaseUrl: string): string {
  // Not with `URL`, which knows no list of hosts.
  return databaseUrl.replace(/\/\/[^@]*@/, `//${GATEWAY.username}:${GATEWAY.password}@`);
}
