import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, hostIPv4 } from '@callplane/local-servers';
import { repositoryRoot, stopAtEnd, temporaryDirectory } from '@callplane/testing';
import { nodeOn, UP_WITHIN_MS } from './node.testkit.js';

const folder = join(repositoryRoot, 'infra', 'janus');
export const newFolder = () => {
  const dir = temporaryDirectory('janus-production');
  stopAtEnd(async () => rmSync(dir, { recursive: true, force: true }));
  return join(dir, 'run');
};

/** Runs the shipped start of Janus. */
export function entrypoint(env: Record<string, string>) {
  const child = spawn('sh', [join(folder, 'entrypoint.sh')], {
    env: { PATH: process.env['PATH'], JANUS_PATH: process.env['JANUS_PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const ended = once(child, 'exit') as Promise<[number | null, string | null]>;
  stopAtEnd(() => {
    child.kill('SIGTERM');
    return ended;
  });
  return { child, ended, output: () => output };
}

export const SECRETS = { MEDIA_API_SECRET: 'production-api-secret', MEDIA_ADMIN_KEY: 'production_admin_key' };

/** Janus with the unchanged production configuration, and a connection to it. */
export async function startProduction() {
  const run = newFolder();
  const port = await freePort();
  const started = entrypoint({
    ...SECRETS,
    JANUS_IP: hostIPv4(),
    JANUS_WS_PORT: String(port),
    JANUS_RTP_PORTS: '30000-30999',
    JANUS_RUN: run,
  });
  const { MEDIA_API_SECRET: apiSecret, MEDIA_ADMIN_KEY: adminKey } = SECRETS;
  const node = nodeOn({ url: `ws://127.0.0.1:${port}`, apiSecret, adminKey });
  await node.untilUp(UP_WITHIN_MS);
  const isHealthy = async () => {
    const env = { JANUS_WS_PORT: String(port), MEDIA_API_SECRET: apiSecret };
    const [code] = await once(spawn('bash', [join(folder, 'healthcheck.sh')], { env }), 'exit');
    return code === 0;
  };
  return { ...started, node, run, isHealthy };
}
