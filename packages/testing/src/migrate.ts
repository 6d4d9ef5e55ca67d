import { applyMigrations, grantGatewayRights } from '@callplane/migrations';

/** The gateway's role on every PostgreSQL of the tests. */
export const GATEWAY = { username: 'callplane_gateway', password: 'test-gateway-password' };

/** Applies the project's migrations and creates the gateway's role. */
export async function migrate(databaseUrl: string): Promise<void> {
  await applyMigrations({ databaseUrl });
  await grantGatewayRights({ databaseUrl, gatewayUrl: gatewayUrlOf(databaseUrl) });
}

/** The same database with the gateway's production rights: no access to keys and secrets. */
export function gatewayUrlOf(databaseUrl: string): string {
  // Not with `URL`, which knows no list of hosts.
  return databaseUrl.replace(/\/\/[^@]*@/, `//${GATEWAY.username}:${GATEWAY.password}@`);
}
