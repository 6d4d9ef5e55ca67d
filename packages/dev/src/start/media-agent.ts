import { join } from 'node:path';
import { SHORT_RUN_FLAGS, startServer, type LocalServer } from '@callplane/local-servers';
import { root } from '../bootstrap.js';

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
    env,
    cwd: root,
    logFile,
    onLine: () => (isReady = true),
    isReady: () => Promise.resolve(isReady),
    onSpawn,
    stopSignal,
  });
}
