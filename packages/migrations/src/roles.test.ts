import { randomBytes } from 'node:crypto';
import { createTestDatabase, gatewayUrlOf } from '@callplane/testing';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { grantGatewayRights } from './roles.js';

/** PostgreSQL: insufficient_privilege. */
const DENIED = '42501';

let url: string;
let owner: pg.Client;
let gateway: pg.Client;
beforeAll(async () => {
  ({ url } = await createTestDatabase());
  owner = new pg.Client(url);
  gateway = new pg.Client(gatewayUrlOf(url));
  await Promise.all([owner.connect(), gateway.connect()]);
});
afterAll(() => Promise.all([owner.end(), gateway.end()]));

const codeOf = (client: pg.Client, statement: string) =>
  client.query(statement).then(
    () => 'allowed',
    (error: unknown) => (error as pg.DatabaseError).code,
  );

describe('the database role of the gateway', () => {
  test.each([
    'SELECT key_hash FROM api_keys',
    'UPDATE api_keys SET revoked_at = NULL',
    'SELECT secret_sealed FROM webhook_secrets',
    'SELECT private_key_sealed FROM signing_keys',
    `UPDATE signing_keys SET status = 'retired'`,
    'SELECT made FROM idempotency_records',
    'SELECT url FROM webhook_endpoints',
    'SELECT body FROM events',
    'DELETE FROM events',
    'DELETE FROM rooms',
    'DELETE FROM participants',
    'UPDATE webhook_deliveries SET status = status',
    'SELECT 1 FROM webhook_attempts',
    'SELECT 1 FROM runtime_operations',
    'SELECT 1 FROM projects',
    'SELECT 1 FROM _prisma_migrations',
    'CREATE TABLE mine (id int)',
    'CREATE ROLE mine',
    'ALTER TABLE rooms DISABLE TRIGGER ALL',
  ])('may not run: %s', async (statement) => {
    expect(await codeOf(gateway, statement)).toBe(DENIED);
  });

  test.each(['SELECT id, public_jwk FROM signing_keys', 'SELECT * FROM rooms', 'SELECT * FROM participant_sessions'])(
    'may run: %s',
    async (statement) => {
      expect(await codeOf(gateway, statement)).toBe('allowed');
    },
  );

  test('has exactly the listed rights, whatever was granted before, and keeps them when they are granted again', async () => {
    const role = new URL(gatewayUrlOf(url)).username;
    await owner.query(`GRANT ALL ON api_keys TO ${role}`);
    await owner.query(`GRANT SELECT (private_key_sealed) ON signing_keys TO ${role}`);
    expect(await codeOf(gateway, 'SELECT key_hash FROM api_keys')).toBe('allowed');
    expect(await grantGatewayRights({ databaseUrl: url }, gatewayUrlOf(url))).toBe(role);
    expect(await codeOf(gateway, 'SELECT key_hash FROM api_keys')).toBe(DENIED);
    expect(await codeOf(gateway, 'SELECT private_key_sealed FROM signing_keys')).toBe(DENIED);
    expect(await codeOf(gateway, 'SELECT id FROM signing_keys')).toBe('allowed');
  });
});

describe('grantGatewayRights', () => {
  const renamed = (username: string, password: string) => {
    const changed = new URL(url);
    Object.assign(changed, { username, password });
    return changed.href;
  };
  const newRole = () => `gateway_${randomBytes(6).toString('hex')}`;

  test('creates the role, sets a new password, and quotes both', async () => {
    const role = `${newRole()}" '`;
    try {
      for (const password of [`it's`, `o"ther`]) {
        const gatewayUrl = renamed(encodeURIComponent(role), encodeURIComponent(password));
        expect(await grantGatewayRights({ databaseUrl: url }, gatewayUrl)).toBe(role);
        const client = new pg.Client(gatewayUrl);
        await client.connect();
        expect(await codeOf(client, 'SELECT 1 FROM api_keys')).toBe(DENIED);
        expect(await codeOf(client, 'SELECT 1 FROM rooms')).toBe('allowed');
        await client.end();
      }
    } finally {
      const name = pg.escapeIdentifier(role);
      await owner.query(`DROP OWNED BY ${name}`);
      await owner.query(`DROP ROLE ${name}`);
    }
  });

  test('rejects the role of the owner, a superuser and another database', async () => {
    await expect(grantGatewayRights({ databaseUrl: url }, url)).rejects.toThrow('names the role of DATABASE_URL');
    const other = new URL(gatewayUrlOf(url));
    other.pathname = '/postgres';
    await expect(grantGatewayRights({ databaseUrl: url }, other.href)).rejects.toThrow('another database');
    const role = newRole();
    await owner.query(`CREATE ROLE ${role} SUPERUSER LOGIN PASSWORD 'x'`);
    try {
      await expect(grantGatewayRights({ databaseUrl: url }, renamed(role, 'x'))).rejects.toThrow(
        `the role ${role} has the rights of the tables' owner`,
      );
    } finally {
      await owner.query(`DROP ROLE ${role}`);
    }
  });
});
