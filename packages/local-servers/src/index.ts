/**
 * Real PostgreSQL, Redis, coturn and Janus as child processes, for `npm start` and for tests.
 * Production does not use this package: there the operator runs these servers.
 */
export * from './coturn.js';
export * from './janus.js';
export * from './ports.js';
export * from './postgres.js';
export * from './redis.js';
export * from './process-table.js';
export * from './server.js';
export * from './unprivileged.js';
