export { grantGatewayRights, grantMediaAgentRights } from './gateway-role/gateway-role.js';
export * from './migrations/migrations.js';
export { MigrationError } from './schema-engine/migration-error.js';
