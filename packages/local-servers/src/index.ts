/**
 * Real PostgreSQL, Redis, coturn and Janus as child processes, for `npm start` and for tests, and Prometheus for tests.
 * Production does not use this package: there the operator runs these servers.
 */
export { startCoturn, type CoturnOptions } from './coturn.js';
export { startJanus, type JanusOptions } from './janus.js';
export { NODE_FLAGS, SHORT_RUN_FLAGS } from './node-flags.js';
export { freePort, hostIPv4, isPortFree } from './ports.js';
export { startNginx, writeNginxFiles, type NginxFiles, type NginxUpstreams } from './nginx.js';
export { startPgBouncer, type PgBouncerOptions } from './pgbouncer.js';
export { startPostgres, type PostgresOptions, type PostgresServer } from './postgres.js';
export { copyPostgres, type BackupSession } from './postgres-copy.js';
export { startPrometheus, type PrometheusOptions } from './prometheus.js';
export { startRedis, startSentinel, type RedisCertificates, type RedisOptions, type SentinelOptions } from './redis.js';
export {
  childrenOf,
  commandLineOf,
  isAlive,
  isSameProcess,
  parentOf,
  processorTimeOf,
  processStamp,
  type ProcessorTime,
  type RecordedProcess,
} from './process-table.js';
export { randomFrom } from './random.js';
export { stopProcess, type StopStep } from './reclaim.js';
export {
  LocalServerError,
  startServer,
  type LocalServer,
  type ServerExit,
  type ServerOptions,
  type ServerPlan,
} from './server.js';
export { type LineShape } from './shaped-line.js';
export { startUdpShaper, type UdpShaper, type UdpShaperOptions } from './udp-shaper.js';
export { startWatchdog, type Watchdog } from './watchdog.js';
