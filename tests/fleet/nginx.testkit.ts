import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bound, freePort, writeNginxFiles, type NginxUpstreams } from '@callplane/local-servers';
import { eventually, repositoryRoot, stopAtEnd, temporaryDirectory } from '@callplane/testing';

export interface TestNginx {
  readonly url: string;
  readonly port: number;
  /** Its working folder, with `tmp` for temporary files. */
  readonly dir: string;
  /** Its standard output and standard error. */
  output(): string;
  stop(): Promise<void>;
}

export interface NginxOptions {
  /** Default: a free one. */
  port?: number;
  /** Changes a file of infra/nginx before nginx reads it, such as a limit that a test exceeds. */
  edit?: (file: string, text: string) => string;
  /** Serves TLS alone, as infra/tls.compose.yml sets it up: https, and TURN for this coturn. */
  tls?: { cert: string; key: string; coturn: { host: string; port: number } };
}

/** Debian's nginx loads it on demand; other builds contain it. */
const STREAM_MODULE = '/usr/lib/nginx/modules/ngx_stream_module.so';

/** Debian's nginx with the configuration of infra/nginx, in front of these ports of 127.0.0.1. */
export async function startNginx(upstreams: NginxUpstreams, options: NginxOptions = {}): Promise<TestNginx> {
  const dir = temporaryDirectory('nginx');
  const port = options.port ?? (await freePort());
  const { edit, tls } = options;
  const from = join(repositoryRoot, 'infra', 'nginx');
  writeNginxFiles(dir, { from, port, upstreams, ...(edit === undefined ? {} : { edit }) });
  const healthPort = tls === undefined ? port : await freePort();
  if (tls !== undefined) await writeTls(dir, tls, { port, healthPort });
  const logFile = join(dir, 'nginx.log');
  const log = openSync(logFile, 'a');
  const nginx = { file: 'nginx', args: ['-p', `${dir}/`, '-c', join(dir, 'nginx.conf'), '-g', 'daemon off;'] };
  // The workers of nginx outlive a killed master.
  const { file, args } = bound({ ...nginx, options: {} }, 'TERM');
  const child = spawn(file, args, {
    detached: true,
    // Logs to a file, because nginx opens /dev/stdout by name, which fails for a socket such as Node's pipes.
    stdio: ['ignore', log, log],
    // Debian installs nginx in a folder that is not in an ordinary user's PATH.
    env: { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` },
  });
  closeSync(log);
  const output = () => readFileSync(logFile, 'utf8');
  let spawnError: NodeJS.ErrnoException | undefined;
  const gone = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.once('error', (error) => {
      spawnError = error;
      resolve();
    });
  });
  const stop = async () => {
    child.kill('SIGTERM');
    await gone;
    rmSync(dir, { recursive: true, force: true });
  };
  if (child.pid !== undefined) stopAtEnd(stop);
  const url = `http${tls === undefined ? '' : 's'}://127.0.0.1:${port}`;
  await eventually(async () => {
    if (spawnError !== undefined || child.exitCode !== null) return true;
    return (await fetch(`http://127.0.0.1:${healthPort}/lb/livez`).catch(() => null))?.status === 200;
  });
  // 127 is the answer of setpriv.
  if (spawnError?.code === 'ENOENT' || child.exitCode === 127) {
    throw new Error('This test needs nginx: apt-get install --no-install-recommends nginx-light libnginx-mod-stream');
  }
  if (spawnError !== undefined || child.exitCode !== null) {
    throw new Error(`nginx did not start: ${spawnError?.message ?? output()}`);
  }
  return { url, port, dir, output, stop };
}

function original(file: string): string {
  return readFileSync(join(repositoryRoot, 'infra', 'nginx', file), 'utf8');
}

/** The files for TLS, with ports and certificates of this test in place of those of the container. */
async function writeTls(
  dir: string,
  { cert, key, coturn }: NonNullable<NginxOptions['tls']>,
  { port, healthPort }: { port: number; healthPort: number },
): Promise<void> {
  const files = { '/etc/nginx-tls/fullchain.pem': cert, '/etc/nginx-tls/privkey.pem': key };
  const replaced: [from: string, to: string][] = [
    ['listen 8443;', `listen 127.0.0.1:${port};`],
    ['listen 8080;', `listen 127.0.0.1:${healthPort};`],
    ['127.0.0.1:8444', `127.0.0.1:${await freePort()}`],
    ['127.0.0.1:8445', `127.0.0.1:${await freePort()}`],
    ['coturn:3478', `${coturn.host}:${coturn.port}`],
    // nginx 1.25 and later.
    ['http2 on;\n', ''],
  ];
  for (const [path, text] of Object.entries(files)) {
    const file = join(dir, path.split('/').at(-1)!);
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
