import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { openLog, sizeOf, tailOf } from './log-file.js';
import { stopProcess, type StopStep } from './reclaim.js';
import type { Command } from './unprivileged.js';

export interface ServerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** True when `stop()` was called, false when the server died by itself or was killed by somebody else. */
  expected: boolean;
}

/** A server that runs as a child process, in a session of its own (Ctrl-C in the terminal does not reach it). */
export interface LocalServer {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  /** Where clients connect, credentials included. */
  readonly url: string;
  /** Stops the server and waits until it is gone. Idempotent; also after it died by itself. */
  stop(): Promise<void>;
  /** Calls back once the process is gone, at once when it is gone already. */
  onExit(listener: (exit: ServerExit) => void): void;
}

/** A server that could not be started. The message ends with the last lines of its log. */
export class LocalServerError extends Error {
  constructor(
    readonly server: string,
    reason: string,
    readonly log: string,
  ) {
    super(log === '' ? `${server} ${reason}` : `${server} ${reason}; the end of its log:\n${log}`);
    this.name = 'LocalServerError';
  }
}

/** What every server's options have in common. */
export interface ServerOptions {
  /** Where the server's output goes; each has a default of its own. */
  logFile?: string;
  /** Told what was done beyond starting, such as stopping a server that an earlier run left behind. */
  onNotice?: (message: string) => void;
  /** Told the process id as soon as there is one, which is before the server is ready. */
  onSpawn?: (pid: number) => void;
}

interface ServerPlan {
  name: string;
  port: number;
  url: string;
  command: Command;
  env?: NodeJS.ProcessEnv;
  cwd: string;
  logFile: string;
  /** Resolves to true once the server answers. Called every 20 ms, so it must be cheap and must not throw. */
  isReady: (pid: number) => Promise<boolean>;
  readyWithinMs: number;
  stopSteps: StopStep[];
  onSpawn: ((pid: number) => void) | undefined;
}

const LOOK_EVERY_MS = 20;

/** Spawns a server and waits until it answers. Throws a LocalServerError when it exits or stays silent instead. */
export async function startServer(plan: ServerPlan): Promise<LocalServer> {
  const logStart = sizeOf(plan.logFile);
  const log = openLog(plan.logFile);
  const child = spawn(plan.command.file, plan.command.args, {
    ...plan.command.options,
    env: plan.env ?? process.env,
    cwd: plan.cwd,
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  let stopping = false;
  const exited = exitOf(child, () => stopping);
  const failed = (reason: string) =>
    new LocalServerError(plan.name, reason, tailOf(plan.logFile, Math.min(logStart, sizeOf(plan.logFile))));

  const pid = child.pid;
  if (pid === undefined) throw failed(`cannot be run (${(await exited).error?.message ?? plan.command.file})`);
  plan.onSpawn?.(pid);

  const until = performance.now() + plan.readyWithinMs;
  while (!(await plan.isReady(pid))) {
    const gone = await Promise.race([exited, delay(LOOK_EVERY_MS)]);
    if (gone !== undefined) throw failed(`exited at start (${gone.signal ?? `code ${gone.code ?? '?'}`})`);
    if (performance.now() < until) continue;
    await stopProcess(pid, [{ signal: 'SIGKILL', graceMs: 5_000 }]);
    throw failed(`was not ready within ${plan.readyWithinMs / 1000} s`);
  }

  let stopped: Promise<void> | undefined;
  return {
    name: plan.name,
    port: plan.port,
    pid,
    url: plan.url,
    stop: () =>
      (stopped ??= (async () => {
        stopping = true;
        if (child.exitCode === null && child.signalCode === null) await stopProcess(pid, plan.stopSteps);
        await exited;
      })()),
    onExit: (listener) => void exited.then(listener),
  };
}

function exitOf(child: ChildProcess, expected: () => boolean): Promise<ServerExit & { error?: Error }> {
  return new Promise((resolve) => {
    child.once('error', (error) => {
      // 'error' also comes for a signal that could not be sent, and then the process still runs.
      if (child.pid === undefined) resolve({ code: null, signal: null, expected: false, error });
    });
    child.once('exit', (code, signal) => resolve({ code, signal, expected: expected() }));
  });
}
