import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { MALLOC, SHORT_RUN_FLAGS, startServer, type LocalServer } from '@callplane/local-servers';
import { root } from '../bootstrap.js';

/**
 * The apps, in start order. `readyPort` names the variable with the port that answers /readyz: apps that serve HTTP use
 * PORT, workers HEALTH_PORT.
 */
export const APPS = [
  { name: 'api', readyPort: 'PORT' },
  { name: 'cleanup-worker', readyPort: 'HEALTH_PORT' },
  { name: 'webhook-worker', readyPort: 'HEALTH_PORT' },
  { name: 'recorder', readyPort: 'HEALTH_PORT' },
  { name: 'signaling', readyPort: 'PORT' },
] as const;

export type App = (typeof APPS)[number];

export interface AppOptions {
  name: string;
  env: NodeJS.ProcessEnv;
  /** The origin that answers /readyz. */
  origin: string;
  logFile: string;
  onLine: (line: string) => void;
  /** How long SIGTERM may take before SIGKILL. */
  stopWithinMs: number;
  onSpawn: (pid: number) => void;
  stopSignal: AbortSignal;
}

/** Half of the semi-spaces that docs/operations/deploy.md recommends: an idle app takes 10 MiB less. */
const NODE_FLAGS = ['--enable-source-maps', '--max-semi-space-size=4', ...SHORT_RUN_FLAGS];

/** Starts an app in its own process and waits until it is ready. An app drops lines rather than wait for their reader. */
export function startApp(options: AppOptions): Promise<LocalServer> {
  const { name, env, origin, logFile, onLine, stopWithinMs, onSpawn, stopSignal } = options;
  const instance = randomUUID();
  const main = join(root, 'apps', name, 'dist', 'main.js');
  return startServer({
    name,
    port: Number(new URL(origin).port),
    url: origin,
    command: { file: process.execPath, args: [...NODE_FLAGS, main], options: {} },
    env: { ...MALLOC, ...env, INSTANCE_ID: instance },
    cwd: root,
    logFile,
    onLine,
    shownLines: 40,
    isReady: () => isReady(`${origin}/readyz`, instance),
    stopSteps: [
      { signal: 'SIGTERM', graceMs: stopWithinMs },
      { signal: 'SIGKILL', graceMs: 5_000 },
    ],
    onSpawn,
    stopSignal,
  });
}

/** Another server may have taken the port since it was free. It must not pass for the app, and get a key. */
async function isReady(url: string, instance: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(3_000), headers: { connection: 'close' } });
    const report = (await response.json()) as { instance?: unknown } | null;
    return response.status === 200 && report?.instance === instance;
  } catch {
    return false;
  }
}

export interface MediaAgentOptions {
  /** As MEDIA_NODES has it. */
  node: { id: string; url: string };
  env: NodeJS.ProcessEnv;
  logFile: string;
  onSpawn: (pid: number) => void;
  stopSignal: AbortSignal;
}

/** The agent beside the local Janus, which records. It is ready once it has written to the log. */
export function startMediaAgent(options: MediaAgentOptions): Promise<LocalServer> {
  const { node, env, logFile, onSpawn, stopSignal } = options;
  const cli = join(root, 'apps', 'cli', 'dist', 'main.js');
  let isReady = false;
  return startServer({
    name: 'media-agent',
    port: Number(new URL(node.url).port),
    url: node.url,
    command: {
      file: process.execPath,
      args: ['--max-semi-space-size=2', ...SHORT_RUN_FLAGS, cli, 'media', 'agent', node.id, node.url, '--json'],
      options: {},
    },
    env: { ...MALLOC, ...env },
    cwd: root,
    logFile,
    onLine: () => (isReady = true),
    isReady: () => Promise.resolve(isReady),
    onSpawn,
    stopSignal,
  });
}
