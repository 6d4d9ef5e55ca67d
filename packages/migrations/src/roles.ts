import { connectionTarget, type HostConfig } from '@callplane/db';
import pg from 'pg';
import { connectionFields, withConnection, withMigrationLock, type DatabaseTarget } from './connection.js';

/**
 * Rights of the signaling gateway. It reads and writes sessions, and writes events and their deliveries. It has no rights
 * on API keys, webhook secrets, stored responses and private signing keys, so a compromised gateway cannot leak them.
 */
const GATEWAY_RIGHTS: readonly string[] = [
  'SELECT ON environments',
  // `SELECT … FOR NO KEY UPDATE` needs the UPDATE right.
  'SELECT, UPDATE ON rooms',
  'SELECT, UPDATE ON participants',
  'SELECT ON participant_tokens',
  'SELECT, INSERT, UPDATE ON participant_sessions',
  'SELECT, INSERT, UPDATE, DELETE ON session_tracks',
  'SELECT, INSERT, UPDATE, DELETE ON signaling_instances',
  'SELECT ON media_nodes',
  'SELECT, INSERT, UPDATE ON media_forwards',
  'SELECT (id, status, public_jwk, created_at, activates_at, retired_at, verifies_until) ON signing_keys',
  // The gateway cannot read stored events or the URLs of receivers: `RETURNING` and the join need only these columns.
  'SELECT (id, environment_id, type, room_id, sequence, created_at), INSERT ON events',
  'SELECT (id, environment_id, events, filter, deleted_at, slot_ms) ON webhook_endpoints',
  'SELECT (id, environment_id, endpoint_id, event_id), INSERT ON webhook_deliveries',
  // The option `record` of a room starts a recording with the first join.
  'SELECT (room_id, mode, status, started_at), INSERT ON recordings',
];

/**
 * Rights of the agents beside media servers: they register their server, and take its rooms off it when it stops. They
 * can read nothing of tenants but ids of rooms and recordings.
 */
const MEDIA_AGENT_RIGHTS: readonly string[] = [
  'SELECT, INSERT, UPDATE ON media_nodes',
  'SELECT (id, status, media_node_id, media_generation, further_node_ids, version) ON rooms',
  'UPDATE (media_node_id, media_generation, further_node_ids, version) ON rooms',
  'SELECT (id, room_id, ended_at, waiting, media_node_id) ON participant_sessions',
  'SELECT (id, room_id, status, started_at, max_duration_seconds, deleted_at) ON recordings',
  'SELECT, INSERT, UPDATE ON recording_captures',
];

/** PostgreSQL: invalid_authorization_specification and invalid_password. */
const LOGIN_REFUSED = new Set(['28000', '28P01']);

/**
 * Gives the role of `gatewayUrl` exactly the rights of the gateway. Creates the role first, or sets its password, when
 * it cannot log in. Repeat it after every migration: new tables and columns carry no rights for the role.
 * @param target has the role that owns the tables.
 * @returns the name of the role
 */
export function grantGatewayRights(target: DatabaseTarget, gatewayUrl: string): Promise<string> {
  return grantRights(target, gatewayUrl, 'GATEWAY_DATABASE_URL', GATEWAY_RIGHTS);
}

/** As {@link grantGatewayRights}, for the agents beside media servers. */
export function grantMediaAgentRights(target: DatabaseTarget, mediaUrl: string): Promise<string> {
  return grantRights(target, mediaUrl, 'MEDIA_DATABASE_URL', MEDIA_AGENT_RIGHTS);
}

/** @param setting has the URL. Messages name it. */
async function grantRights(
  target: DatabaseTarget,
  url: string,
  setting: string,
  rights: readonly string[],
): Promise<string> {
  const owner = await connectionFields(target);
  const { user: role = '', password = '', database } = connectionTarget({ url }).hosts[0]?.() ?? {};
  if (role === '' || password === '') throw new Error(`${setting} names no role`);
  if (role === owner.user) throw new Error(`${setting} names the role of DATABASE_URL`);
  if (database !== owner.database) throw new Error(`${setting} names another database`);
  await withMigrationLock(owner, async (client) => {
    // Tries to log in first: an operator may have created the role, and DATABASE_URL may lack the right to change
    // roles.
    const isKnown = await canLogIn({ ...owner, user: role, password });
    if (!isKnown) await makeRole(client, role, password);
    await refuseOwners(client, role);
    await grant(client, role, rights);
  });
  return role;
}

async function canLogIn(fields: HostConfig): Promise<boolean> {
  try {
    await withConnection(fields, () => Promise.resolve());
    return true;
  } catch (error) {
    if (LOGIN_REFUSED.has((error as pg.DatabaseError).code ?? '')) return false;
    throw error;
  }
}

async function makeRole(client: pg.Client, role: string, password: string): Promise<void> {
  const { rowCount } = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [role]);
  const verb = rowCount === 0 ? 'CREATE' : 'ALTER';
  await client.query(`${verb} ROLE ${pg.escapeIdentifier(role)} LOGIN PASSWORD ${pg.escapeLiteral(password)}`);
}

/** Rejects a superuser or a member of the tables' owner: such a role has every right, whatever is granted. */
async function refuseOwners(client: pg.Client, role: string): Promise<void> {
  const { rows } = await client.query<{ owns: boolean }>(
    `SELECT rolsuper OR pg_has_role(oid, current_user, 'MEMBER') AS owns FROM pg_roles WHERE rolname = $1`,
    [role],
  );
  if (rows[0]?.owns === true) throw new Error(`the role ${role} has the rights of the tables' owner`);
}

/** Uses one transaction, so that a running process never lacks a right. */
async function grant(client: pg.Client, role: string, rights: readonly string[]): Promise<void> {
  const name = pg.escapeIdentifier(role);
  await client.query('BEGIN');
  try {
    await client.query(`REVOKE ALL ON ALL TABLES IN SCHEMA public FROM ${name}`);
    await client.query(`GRANT USAGE ON SCHEMA public TO ${name}`);
    for (const right of rights) await client.query(`GRANT ${right} TO ${name}`);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}
