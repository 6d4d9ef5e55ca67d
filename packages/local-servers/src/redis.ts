import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { reclaim, type StopStep } from './reclaim.js';
import { startServer, type LocalServer, type ServerOptions } from './server.js';
import { serverDirectory, serverFile, withoutRoot } from './unprivileged.js';

export interface RedisOptions extends ServerOptions {
  /** Holds the append-only file, the configuration (mode 0600) and the pid file. */
  dir: string;
  port: number;
  /** Required of every client, if set. URL-safe characters only. */
  password?: string;
}

const STOP_STEPS: StopStep[] = [
  { signal: 'SIGTERM', graceMs: 5_000 },
  { signal: 'SIGKILL', graceMs: 5_000 },
];
const READY_WITHIN_MS = 60_000;

/**
 * Runs `redis-server` on 127.0.0.1 with an append-only file synced every second and without eviction (BullMQ needs
 * both). If the server of an earlier run on the same directory is still running, stops it first.
 *
 * `logFile` defaults to `<dir>/redis.log`. Throws a LocalServerError if the program is missing or does not start.
 */
export async function startRedis(options: RedisOptions): Promise<LocalServer> {
  const dir = resolve(options.dir);
  const configFile = join(dir, 'redis.conf');
  const pidFile = join(dir, 'redis.pid');
  const left = await reclaim(pidFile, configFile, STOP_STEPS);
  if (left !== undefined) options.onNotice?.(`stopped Redis (pid ${left}), left running by an earlier start`);

  serverDirectory(dir);
  const config = [
    'bind 127.0.0.1',
    `port ${options.port}`,
    ...(options.password === undefined ? [] : [`requirepass ${options.password}`]),
    `dir "${dir}"`,
    `pidfile "${pidFile}"`,
    'daemonize no',
    'appendonly yes',
    'appendfsync everysec',
    'save ""',
    'maxmemory-policy noeviction',
    // The configuration's path must stay visible in the process table: reclaim() recognises a stale server by it.
    'set-proc-title no',
  ];
  serverFile(configFile, `${config.join('\n')}\n`);
  const credentials = options.password === undefined ? '' : `:${options.password}@`;
  return startServer({
    name: 'redis',
    port: options.port,
    url: `redis://${credentials}127.0.0.1:${options.port}`,
    command: withoutRoot([configFile], [dir])('redis-server', [configFile]),
    cwd: '/',
    logFile: options.logFile ?? join(dir, 'redis.log'),
    isReady: () => answersPing(options.port, options.password),
    readyWithinMs: READY_WITHIN_MS,
    stopSteps: STOP_STEPS,
    onSpawn: options.onSpawn,
  });
}

/** True once Redis answers a PING; while it loads its append-only file it answers with an error. */
function answersPing(port: number, password: string | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    let answer = '';
    const finish = (ready: boolean) => {
      socket.destroy();
      resolve(ready);
    };
    socket.setTimeout(1_000, () => finish(false));
    socket.once('error', () => finish(false));
    socket.once('close', () => finish(false));
    socket.once('connect', () => socket.write(`${password === undefined ? '' : `AUTH ${password}\r\n`}PING\r\n`));
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
      if (answer.includes('+PONG')) finish(true);
      else if (answer.includes('-')) finish(false);
    });
  });
}
