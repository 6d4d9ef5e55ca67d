export { applyMigrations, MigrationError, pendingMigrations, type MigrationTarget } from './migrate.js';
export { grantGatewayRights, grantMediaAgentRights } from './roles.js';
