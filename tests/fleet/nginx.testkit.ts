import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '@callplane/local-servers';
import { eventually, repositoryRoot, superviseProcess, temporaryDirectory } from '@callplane/testing';

export interface TestNginx {
  readonly url: string;
  readonly port: number;
  /** Its standard output and standard error. */
  output(): string;
  stop(): Promise<void>;
}

export interface NginxOptions {
  /** Changes a file of infra/nginx before nginx reads it, such as a limit that a test exceeds. */
  edit?: (file: string, text: string) => string;
}

/** Debian's nginx with the configuration of infra/nginx, in front of these ports of 127.0.0.1. */
export async function startNginx(
  upstreams: {
    api: readonly number[];
    signaling: readonly number[];
  },
  options: NginxOptions = {},
): Promise<TestNginx> {
  const dir = temporaryDirectory('nginx');
  const port = await freePort();
  mkdirSync(join(dir, 'tmp'));
  const { edit = (_file, text) => text } = options;
  for (const file of ['nginx.conf', 'limits.conf', 'errors.conf']) {
    writeFileSync(join(dir, file), edit(file, readFileSync(join(repositoryRoot, 'infra', 'nginx', file), 'utf8')));
  }
  writeFileSync(join(dir, 'listen.conf'), `listen 127.0.0.1:${port};\n`);
  writeFileSync(join(dir, 'upstreams.conf'), upstreamsOf(upstreams));
  const logFile = join(dir, 'nginx.log');
  const log = openSync(logFile, 'a');
  const child = spawn('nginx', ['-p', `${dir}/`, '-c', join(dir, 'nginx.conf'), '-g', 'daemon off;'], {
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
  if (child.pid !== undefined) superviseProcess(child.pid, stop);
  const url = `http://127.0.0.1:${port}`;
  await eventually(async () => {
    if (spawnError !== undefined || child.exitCode !== null) return true;
    return (await fetch(`${url}/lb/livez`).catch(() => null))?.status === 200;
  });
  if (spawnError?.code === 'ENOENT') {
    throw new Error('This test needs nginx: apt-get install --no-install-recommends nginx-light');
  }
  if (spawnError !== undefined || child.exitCode !== null) {
    throw new Error(`nginx did not start: ${spawnError?.message ?? output()}`);
  }
  return { url, port, output, stop };
}

/** infra/nginx/upstreams.conf with local ports in place of Docker's names, which need a newer nginx. */
function upstreamsOf(ports: { api: readonly number[]; signaling: readonly number[] }): string {
  return readFileSync(join(repositoryRoot, 'infra', 'nginx', 'upstreams.conf'), 'utf8')
    .replace(/^resolver .*;$/m, '')
    .replaceAll(
      /^( *server) (api|signaling):\d+ resolve( .*;)$/gm,
      (_, server: string, name: 'api' | 'signaling', rest: string) =>
        // An upstream group must not be empty.
        (ports[name].length > 0 ? ports[name] : [9]).map((port) => `${server} 127.0.0.1:${port}${rest}`).join('\n'),
    );
}
