/**
 * Real PostgreSQL, Redis, coturn and Janus as child processes, for `npm start` and for tests, and Prometheus for tests.
 * Nothing here is used in production, where these servers are the operator's.
 */
export { startCoturn, type CoturnOptions } from './coturn.js';
export { startJanus, type JanusOptions } from './janus.js';
export { freePort, hostIPv4, isPortFree } from './ports.js';
export { startPostgres, type PostgresOptions, type PostgresServer } from './postgres.js';
export { startPrometheus, type PrometheusOptions } from './prometheus.js';
export { startRedis, type RedisOptions } from './redis.js';
export { isAlive, commandLineOf, childrenOf } from './process-table.js';
export { stopProcess, type StopStep } from './reclaim.js';
export { openLog, sizeOf, tailOf } from './log-file.js';
export { LocalServerError, type LocalServer, type ServerExit, type ServerOptions } from './server.js';
export { startWatchdog, type Watchdog } from './watchdog.js';
