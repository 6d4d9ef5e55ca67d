import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort, serverDirectory, serverFile, startServer, withoutRoot } from '@callplane/local-servers';
import { GATEWAY } from './test-database.js';
import { temporaryDirectory, testServer } from './test-servers.js';

/** Sessions that it keeps open for each database and role; fewer than its clients, so that they change sessions. */
const POOL_SIZE = 5;

/**
 * Starts a PgBouncer in transaction mode in front of a PostgreSQL, for all of its databases. It accepts no start-up
 * parameters that it does not know itself.
 * @returns a function that turns URLs of that PostgreSQL into URLs of the pooler.
 */
export async function startTestPgBouncer(target: string): Promise<{ throughPooler: (url: string) => string }> {
  const top = temporaryDirectory('pgbouncer');
  const dir = join(top, 'pgbouncer');
  const [configFile, users] = [join(dir, 'pgbouncer.ini'), join(dir, 'users.txt')];
  const port = await freePort();
  const { username, password, port: postgresPort } = new URL(target);
  const config = [
    '[databases]',
    `* = host=127.0.0.1 port=${postgresPort}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    `pidfile = ${join(dir, 'pgbouncer.pid')}`,
    'auth_type = scram-sha-256',
    `auth_file = ${users}`,
    'pool_mode = transaction',
    `default_pool_size = ${POOL_SIZE}`,
    'max_client_conn = 200',
    // Sessions of databases without clients leave room for others.
    'server_idle_timeout = 10',
    'query_timeout = 15',
    'idle_transaction_timeout = 20',
  ];
  await testServer(top, () => {
    serverDirectory(dir);
    serverFile(users, `"${username}" "${password}"\n"${GATEWAY.username}" "${GATEWAY.password}"\n`);
    serverFile(configFile, `${config.join('\n')}\n`);
    return startServer({
      name: 'pgbouncer',
      port,
      url: `postgresql://127.0.0.1:${port}`,
      command: withoutRoot([configFile], [dir])('pgbouncer', [configFile]),
      // Debian installs the program in a folder that an ordinary user's PATH lacks.
      env: { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` },
      logFile: join(dir, 'pgbouncer.log'),
      isReady: () => listens(port),
      onSpawn: undefined,
    });
  });
  return { throughPooler: (url) => Object.assign(new URL(url), { port: String(port) }).href };
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
