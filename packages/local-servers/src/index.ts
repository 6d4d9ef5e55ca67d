/**
 * Real PostgreSQL, Redis, coturn and Janus as child processes, for `npm start` and for tests, and Prometheus for tests.
 * Production does not use this package: there the operator runs these servers.
 */
export { startCoturn, type CoturnOptions } from './coturn.js';
export { startJanus } from './janus.js';
export { NODE_FLAGS, SHORT_RUN_FLAGS } from './node-flags.js';
export { freePort, hostIPv4, isPortFree } from './ports.js';
export { startNginx, writeNginxFiles, type NginxUpstreams } from './nginx.js';
export { startPgBouncer } from './pgbouncer.js';
export { startPostgres, type PostgresOptions, type PostgresServer } from './postgres.js';
export { copyPostgres } from './postgres-copy.js';
export { startPrometheus } from './prometheus.js';
export { startRedis, startSentinel, type RedisCertificates } from './redis.js';
export {
  childrenOf,
  commandLineOf,
  isAlive,
  isInForeground,
  isSameProcess,
  processorTimeOf,
  processStamp,
  type ProcessorTime,
  type RecordedProcess,
} from './process-table.js';
export { LocalServerError, startServer, type LocalServer, type ServerExit } from './server.js';
export { randomFrom, type LineShape } from './shaped-line.js';
export { bound } from './unprivileged.js';
export { startUdpShaper, type UdpShaper } from './udp-shaper.js';
