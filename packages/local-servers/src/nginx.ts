import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startServer, type LocalServer, type ServerOptions } from './server.js';

/** Ports on 127.0.0.1 of the instances behind the load balancer. */
export interface NginxUpstreams {
  api: readonly number[];
  signaling: readonly number[];
}

export interface NginxFiles {
  /** The folder `infra/nginx` of the repository. */
  from: string;
  port: number;
  upstreams: NginxUpstreams;
  /** Changes a file before nginx reads it, such as a limit that a test exceeds. */
  edit?: (file: string, text: string) => string;
}

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

/** Writes the configuration of infra/nginx for ports of 127.0.0.1 into an existing directory. */
export function writeNginxFiles(
  dir: string,
  { from, port, upstreams, edit = (_file, text) => text }: NginxFiles,
): void {
  const original = (file: string): string => readFileSync(join(from, file), 'utf8');
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

/** Runs `nginx` with the configuration of infra/nginx, without TLS. */
export function startNginx(options: NginxFiles & ServerOptions & { dir: string }): Promise<LocalServer> {
  const { dir, port } = options;
  writeNginxFiles(dir, options);
  const url = `http://127.0.0.1:${port}`;
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
    logFile: options.logFile ?? join(dir, 'nginx.log'),
    isReady: () =>
      fetch(`${url}/lb/livez`).then(
        ({ status }) => status === 200,
        () => false,
      ),
    // Its workers outlive a killed master.
    deathSignal: 'TERM',
    onSpawn: options.onSpawn,
  });
}
