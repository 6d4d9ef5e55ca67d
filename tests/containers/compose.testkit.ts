import { execFile, execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, hostIPv4 } from '@callplane/local-servers';
import { repositoryRoot, stopAtEnd, temporaryDirectory, type TestCertificate } from '@callplane/testing';

/** The address of this machine in the network of docker-compose.yml, at which containers reach it. */
export const HOST_SEEN_BY_CONTAINERS = '172.28.0.1';
/** Includes the time to build all images from scratch on a loaded machine. */
export const UP_WITHIN_MS = 40 * 60_000;

export type Deployment = Awaited<ReturnType<typeof deploy>>;

/**
 * Follows the operator's documentation in a copy of this tree: settings, secrets, `docker compose up`. The test uses
 * free ports and its own names. The network is the one of the file, so no other Callplane may run on this engine.
 */
export async function deploy() {
  const dir = temporaryDirectory('containers');
  // The folder contains secrets.
  chmodSync(dir, 0o700);
  const listed = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
  const files = execFileSync('git', listed, { cwd: repositoryRoot, encoding: 'utf8' }).split('\0').filter(Boolean);
  for (const file of files) {
    mkdirSync(dirname(join(dir, file)), { recursive: true });
    cpSync(join(repositoryRoot, file), join(dir, file));
  }
  const port = await freePort();
  const ip = hostIPv4();
  writeFileSync(
    join(dir, '.env'),
    [
      ...['COMPOSE_PROJECT_NAME=callplane-test', 'CALLPLANE_VERSION=test', `PUBLIC_PORT=${port}`],
      ...[`TURN_IP=${ip}`, `JANUS_IP=${ip}`, ''],
    ].join('\n'),
  );
  writeFileSync(join(dir, 'docker-compose.override.yml'), JSON.stringify(OVERRIDES));

  const run = promisify(execFile);
  /** Runs a script of infra/. */
  const script = async (name: string, ...args: string[]) =>
    (await run(join(dir, 'infra', name), args, { cwd: dir })).stdout;
  /** Runs `docker compose …`; resolves to its standard output. */
  const compose = async (...args: string[]) =>
    (await run('docker', ['compose', '--progress', 'quiet', ...args], { cwd: dir, maxBuffer: 2 ** 26 })).stdout;
  await script('secrets.sh');
  const remove = (): Promise<string> => compose('--profile', '*', 'down', '--volumes', '--timeout', '1');
  stopAtEnd(async () => {
    await remove();
    rmSync(dir, { recursive: true, force: true });
  });
  // A run that was killed has left its containers, and volumes with other passwords.
  await remove();
  await compose('up', '--build', '--detach');
  return {
    /** The URL of the load balancer. */
    url: `http://127.0.0.1:${port}`,
    compose,
    script,
    /** Runs `rtc … --json`, as an operator of this deployment does. */
    rtc: async (...args: string[]) => JSON.parse(await compose('run', '--rm', '-T', 'cli', ...args, '--json')),
    /** Installs a certificate for infra/tls.compose.yml, as an operator does. */
    installCertificate({ cert, key }: TestCertificate) {
      const tls = join(dir, 'secrets', 'tls');
      mkdirSync(tls, { recursive: true });
      for (const [name, text] of [
        ['fullchain.pem', cert],
        ['privkey.pem', key],
      ] as const) {
        rmSync(join(tls, name), { force: true });
        writeFileSync(join(tls, name), text, { mode: 0o444 });
      }
    },
    /** The secret of the relay's credentials. */
    turnSecret: () => readFileSync(join(dir, 'secrets', 'turn_secret'), 'utf8').trim(),
    /** Enables infra/tls.compose.yml; resolves to the TLS port. */
    async addTls() {
      const tlsPort = await freePort();
      const files = ['docker-compose.yml', 'docker-compose.override.yml', 'infra/tls.compose.yml'].join(':');
      appendFileSync(join(dir, '.env'), `COMPOSE_FILE=${files}\nPUBLIC_TLS_PORT=${tlsPort}\n`);
      await compose('up', '--detach', '--no-deps', '--wait', 'load-balancer');
      return tlsPort;
    },
    /** Runs a command in the first container of a service. */
    exec: (service: string, ...command: string[]) => compose('exec', '-T', service, ...command),
    /** The address at which a port of a container is published. */
    published: async (service: string, inside: number) => (await compose('port', service, String(inside))).trim(),
  };
}

/** Settings that only a test may have: receivers on this machine and no rate limits. JSON is valid YAML. */
const OPEN = { WEBHOOK_ALLOW_HTTP: 'true', WEBHOOK_ALLOWED_CIDRS: `${HOST_SEEN_BY_CONTAINERS}/32` };
const UNLIMITED = { RATE_LIMIT_READS_PER_SECOND: '0', RATE_LIMIT_WRITES_PER_SECOND: '0' };
const OVERRIDES = {
  services: {
    api: { environment: { ...OPEN, ...UNLIMITED } },
    'webhook-worker': { environment: OPEN },
    // Publishes free ports, because this machine may run its own servers.
    prometheus: { ports: ['127.0.0.1::9090'] },
  },
};
