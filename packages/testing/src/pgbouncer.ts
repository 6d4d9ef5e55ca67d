import { connect } from 'node:net';
import { join } from 'node:path';
import { serverDirectory, serverFile, startServer, withoutRoot, type LocalServer } from '@callplane/local-servers';

export interface PgBouncerOptions {
  /** Holds the configuration, the passwords (mode 0600) and the pid file. */
  dir: string;
  port: number;
  /** The port of PostgreSQL on 127.0.0.1. */
  postgresPort: number;
  /** The passwords of the roles that may connect. Without quotation marks. */
  passwords: Readonly<Record<string, string>>;
  /** Sessions that it keeps open for each database and role; fewer than its clients, so that they change sessions. */
  poolSize: number;
  /** Default: 200. */
  clientsMax?: number;
}

/**
 * Runs `pgbouncer` on 127.0.0.1 in transaction mode, for all databases of a PostgreSQL. It accepts no start-up
 * parameters that it does not know itself.
 */
export async function startPgBouncer(options: PgBouncerOptions): Promise<LocalServer> {
  const { dir } = options;
  const configFile = join(dir, 'pgbouncer.ini');
  const pidFile = join(dir, 'pgbouncer.pid');
  const users = join(dir, 'users.txt');
  serverDirectory(dir);
  const lines = Object.entries(options.passwords).map(([role, password]) => `"${role}" "${password}"`);
  serverFile(users, `${lines.join('\n')}\n`);
  const config = [
    '[databases]',
    `* = host=127.0.0.1 port=${options.postgresPort}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${options.port}`,
    'unix_socket_dir =',
    `pidfile = ${pidFile}`,
    'auth_type = scram-sha-256',
    `auth_file = ${users}`,
    'pool_mode = transaction',
    `default_pool_size = ${options.poolSize}`,
    `max_client_conn = ${options.clientsMax ?? 200}`,
    // Sessions of databases without clients leave room for others.
    'server_idle_timeout = 10',
    'query_timeout = 15',
    'idle_transaction_timeout = 20',
  ];
  serverFile(configFile, `${config.join('\n')}\n`);
  return startServer({
    name: 'pgbouncer',
    port: options.port,
    url: `postgresql://127.0.0.1:${options.port}`,
    command: withoutRoot([configFile], [dir])('pgbouncer', [configFile]),
    // Debian installs the program in a folder that an ordinary user's PATH lacks.
    env: { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` },
    logFile: join(dir, 'pgbouncer.log'),
    isReady: () => listens(options.port),
    onSpawn: undefined,
  });
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const finish = (isListening: boolean) => {
      socket.destroy();
      resolve(isListening);
    };
    socket.once('error', () => finish(false));
    socket.once('connect', () => finish(true));
  });
}
