import { spawn } from 'node:child_process';
import { bound } from '@callplane/local-servers';
import { appMain } from './test-app.js';
import { repositoryRoot, stopAtEnd } from './resources.js';
import type { TestJanus } from './test-servers.js';

interface TestAgent {
  readonly pid: number;
  output(): string;
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM. Idempotent; called at the end of the test file. */
  stop(): Promise<void>;
}

/** Runs the agent beside a Janus as a process, as operators do. */
export function startMediaAgent(
  janus: TestJanus,
  nodeId: string,
  settings: { databaseUrl: string; recordingsFolder: string; metricsPort?: number },
): TestAgent {
  const args = [appMain('cli'), 'media', 'agent', nodeId, janus.url, '--json'];
  const { file, args: all } = bound({ file: process.execPath, args, options: {} });
  const child = spawn(file, all, {
    cwd: repositoryRoot,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      DATABASE_URL: settings.databaseUrl,
      MEDIA_API_SECRET: janus.apiSecret,
      MEDIA_ADMIN_KEY: janus.adminKey,
      MEDIA_CAPTURE_FOLDER: janus.captureFolder,
      RECORDINGS_FOLDER: settings.recordingsFolder,
      METRICS_PORT: String(settings.metricsPort ?? 0),
    },
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
  };
  stopAtEnd(stop);
  return { pid: child.pid ?? 0, output: () => text, kill: (signal) => void child.kill(signal), stop };
}
