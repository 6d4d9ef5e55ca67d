/**
 * Real PostgreSQL, Redis, coturn and Janus as child processes, for `npm start` and for tests.
 * Production does not use this package: there the operator runs these servers.
 */
export { startCoturn, type CoturnOptions } from './coturn.js';
export { captureFolderOf, startJanus, type JanusOptions } from './janus.js';
export { freePort, hostIPv4, isPortFree } from './ports.js';
export { startPostgres, type PostgresOptions, type PostgresServer } from './postgres.js';
export { redisUrlOf, startRedis, startSentinel, type RedisCertificates } from './redis.js';
export { childrenOf, commandLineOf, isAlive } from './process-table.js';
export {
  LocalServerError,
  NODE_FLAGS,
  SHORT_RUN_FLAGS,
  startServer,
  type LocalServer,
  type ServerOptions,
} from './server.js';
export { bound, serverDirectory, serverFile, withoutRoot } from './unprivileged.js';
