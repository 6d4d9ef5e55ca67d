import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { freePort, startServer, type LocalServer, type ServerOptions } from '@callplane/local-servers';
import { repositoryRoot } from './resources.js';
import { temporaryDirectory, testServer, type TestServer } from './test-servers.js';

/** Ports on 127.0.0.1 of the instances behind the load balancer. */
export interface NginxUpstreams {
  api: readonly number[];
  signaling: readonly number[];
}

interface NginxOptions {
  /** Default: a free one. */
  port?: number;
  /** Changes a file of infra/nginx before nginx reads it, such as a limit that a test exceeds. */
  edit?: (file: string, text: string) => string;
  /** Serves TLS alone, as infra/tls.compose.yml sets it up: https, and TURN for this coturn. */
  tls?: NginxTls;
}

interface NginxTls {
  cert: string;
  key: string;
  coturn: { host: string; port: number };
  /** The address to listen at; default 127.0.0.1. */
  host?: string;
}

export type TestNginx = TestServer & {
  /** Its working folder, with `tmp` for temporary files. */
  readonly dir: string;
  /** Its standard output and standard error. */
  output(): string;
};

const FOLDER = join(repositoryRoot, 'infra', 'nginx');
/** Files of infra/nginx that nginx reads unchanged. */
const FILES = [
  'nginx.conf',
  'limits.conf',
  'errors.conf',
  'error-pages.conf',
  'proxy-api.conf',
  'proxy-signaling.conf',
  'stream.conf',
];
/** Debian's nginx loads it on demand; other builds contain it. */
const STREAM_MODULE = '/usr/lib/nginx/modules/ngx_stream_module.so';

/** Debian's nginx with the configuration of infra/nginx, in front of these ports of 127.0.0.1. */
export async function startTestNginx(upstreams: NginxUpstreams, options: NginxOptions = {}): Promise<TestNginx> {
  const dir = temporaryDirectory('nginx');
  const port = options.port ?? (await freePort());
  const healthPort = options.tls === undefined ? port : await freePort();
  writeFiles(dir, port, upstreams, options.edit);
  if (options.tls !== undefined) await writeTls(dir, options.tls, { port, healthPort });
  const host = options.tls?.host ?? '127.0.0.1';
  const url = `http${options.tls === undefined ? '' : 's'}://${host}:${port}`;
  const server = await testServer(dir, () => run(dir, { url, port, healthPort }));
  return Object.assign(server, { dir, output: () => readFileSync(join(dir, 'nginx.log'), 'utf8') });
}

/** The same without TLS in an existing folder, for a program that ends it itself. */
export function startNginx({
  dir,
  port,
  upstreams,
  onSpawn,
}: ServerOptions & { dir: string; port: number; upstreams: NginxUpstreams }): Promise<LocalServer> {
  writeFiles(dir, port, upstreams);
  return run(dir, { url: `http://127.0.0.1:${port}`, port, healthPort: port }, onSpawn);
}

function run(
  dir: string,
  { url, port, healthPort }: { url: string; port: number; healthPort: number },
  onSpawn?: ServerOptions['onSpawn'],
): Promise<LocalServer> {
  return startServer({
    name: 'nginx',
    port,
    url,
    command: {
      file: 'nginx',
      args: ['-p', `${dir}/`, '-c', join(dir, 'nginx.conf'), '-g', 'daemon off;'],
      options: {},
    },
    // Debian installs nginx in a folder that is not in an ordinary user's PATH.
    env: { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` },
    logFile: join(dir, 'nginx.log'),
    isReady: () =>
      fetch(`http://127.0.0.1:${healthPort}/lb/livez`).then(
        ({ status }) => status === 200,
        () => false,
      ),
    // Its workers outlive a killed master.
    deathSignal: 'TERM',
    onSpawn,
  });
}

/** Writes the configuration of infra/nginx for ports of 127.0.0.1. */
function writeFiles(
  dir: string,
  port: number,
  upstreams: NginxUpstreams,
  edit: NonNullable<NginxOptions['edit']> = (_file, text) => text,
): void {
  mkdirSync(join(dir, 'tmp'), { recursive: true });
  for (const file of FILES) writeFileSync(join(dir, file), edit(file, original(file)));
  writeFileSync(join(dir, 'listen.conf'), `listen 127.0.0.1:${port};\n`);
  const named = upstreamsOf(original('upstreams.conf'), upstreams);
  writeFileSync(join(dir, 'upstreams.conf'), edit('upstreams.conf', named));
}

/** Local ports in place of Docker's names, which need a newer nginx. */
function upstreamsOf(text: string, ports: NginxUpstreams): string {
  return text
    .replace(/^resolver .*;$/m, '')
    .replaceAll(
      /^( *server) (api|signaling):\d+ resolve( .*;)$/gm,
      (_, server: string, name: 'api' | 'signaling', rest: string) =>
        // An upstream group must not be empty.
        (ports[name].length > 0 ? ports[name] : [9]).map((port) => `${server} 127.0.0.1:${port}${rest}`).join('\n'),
    );
}

function original(file: string): string {
  return readFileSync(join(FOLDER, file), 'utf8');
}

/** The files for TLS, with ports and certificates of this test instead of the container's. */
async function writeTls(
  dir: string,
  { cert, key, coturn, host = '127.0.0.1' }: NginxTls,
  { port, healthPort }: { port: number; healthPort: number },
): Promise<void> {
  const files = { '/etc/nginx-tls/fullchain.pem': cert, '/etc/nginx-tls/privkey.pem': key };
  const replaced: [from: string, to: string][] = [
    ['listen 8443;', `listen ${host}:${port};`],
    ['listen 8080;', `listen 127.0.0.1:${healthPort};`],
    ['127.0.0.1:8444', `127.0.0.1:${await freePort()}`],
    ['127.0.0.1:8445', `127.0.0.1:${await freePort()}`],
    ['coturn:3478', `${coturn.host}:${coturn.port}`],
    // nginx 1.25 and later.
    ['http2 on;\n', ''],
  ];
  for (const [path, text] of Object.entries(files)) {
    const file = join(dir, basename(path));
    writeFileSync(file, text, { mode: 0o600 });
    replaced.push([path, file]);
  }
  for (const name of ['listen', 'stream']) {
    const text = replaced.reduce((all, [from, to]) => all.replaceAll(from, to), original(`${name}.tls.conf`));
    writeFileSync(join(dir, `${name}.conf`), text);
  }
  const module = existsSync(STREAM_MODULE) ? `load_module ${STREAM_MODULE};\n` : '';
  writeFileSync(join(dir, 'nginx.conf'), module + readFileSync(join(dir, 'nginx.conf'), 'utf8'));
}
