export * from './client/database.js';
export * from './client/unavailable.js';
export { Prisma } from './generated/client.js';
export { MigrationError } from './migrations/migration-error.js';
export * from './migrations/migrations.js';
