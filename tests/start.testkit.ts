import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import { freePort } from '@callplane/local-servers';
import { eventually, repositoryRoot, stopAtEnd, temporaryDirectory } from '@callplane/testing';

/** The local start as a user runs it: `npm start` with a data directory and ports of its own. */

export interface Dev {
  baseUrl: string;
  projectId: string;
  environmentId: string;
  secretKey: string;
  publishableKey: string;
  databaseUrl: string;
  redisUrl: string;
  signalingUrl: string;
  demoUrl: string;
  metricsUrls: Record<string, string>;
  processes: { name: string; pid: number }[];
}

export interface Start {
  child: ChildProcess;
  output: () => string;
  /** Exit code, or the signal that ended the process. */
  ended: Promise<number | string>;
}

// Supervised processes start and stop within seconds, but on two cores that other test files use as well.
export const READY_MS = 120_000;

/** The environment that a process was started with (Linux). */
export const environmentOf = (pid: number) =>
  Object.fromEntries(
    readFileSync(`/proc/${pid}/environ`, 'utf8')
      .split('\0')
      .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
  );

/** Starts of the calling test file. They share one data directory: only the first start has to create the database. */
export function localStarts() {
  let dataDir = '';
  let port = 0;
  let signalingPort = 0;
  const starts: Start[] = [];
  afterAll(async () => {
    for (const { child, ended } of starts) {
      child.kill('SIGTERM');
      // A process that a test left frozen must not delay the other tests. The kernel kills the children of a killed
      // start.
      const patience = setTimeout(() => child.kill('SIGKILL'), 60_000);
      await ended;
      clearTimeout(patience);
    }
    rmSync(join(dataDir, '..'), { recursive: true, force: true });
  });
  beforeAll(async () => {
    dataDir = join(temporaryDirectory('start'), 'data');
    port = await freePort();
    signalingPort = await freePort();
  });

  function start(env: Record<string, string> = {}, command = [process.execPath, 'scripts/dev.mjs', 'start']): Start {
    const [file = '', ...args] = command;
    // Settings of the user who runs the tests must not reach the start under test.
    const inherited = {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '',
    };
    const child = spawn(file, args, {
      cwd: repositoryRoot,
      env: { ...inherited, DATA_DIR: dataDir, PORT: String(port), SIGNALING_PORT: String(signalingPort), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
    }
    const ended = new Promise<number | string>((resolve) => {
      child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
    });
    stopAtEnd(() => {
      child.kill('SIGTERM');
      return ended;
    });
    const begun = { child, output: () => text, ended };
    starts.push(begun);
    return begun;
  }

  const devFile = () => join(dataDir, 'dev.json');
  const readDev = () => JSON.parse(readFileSync(devFile(), 'utf8')) as Dev;
  async function ready(begun: Start): Promise<Dev> {
    await eventually(
      () => {
        if (begun.child.exitCode !== null) throw new Error(`the start ended:\n${begun.output()}`);
        return existsSync(devFile()) && begun.output().includes('Callplane runs');
      },
      { timeoutMs: READY_MS },
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${begun.output()}`);
    });
    return readDev();
  }
  return {
    dataDir: () => dataDir,
    port: () => port,
    signalingPort: () => signalingPort,
    start,
    ready,
    devFile,
    readDev,
    pidOf: (name: string) => readDev().processes.find((entry) => entry.name === name)!.pid,
  };
}
