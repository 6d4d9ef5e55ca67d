import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { openLog, sizeOf, tailOf } from './log-file.js';
import { stopProcess, type StopStep } from './reclaim.js';
import type { Command } from './unprivileged.js';

export interface ServerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** True after `stop()`, false if the server died by itself or another process killed it. */
  expected: boolean;
}

/** A server that runs as a child process, in a session of its own, so that Ctrl-C in the terminal does not reach it. */
export interface LocalServer {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  /** The URL for clients, including credentials. */
  readonly url: string;
  /** Stops the server and waits until it has exited. Idempotent, also after the server died by itself. */
  stop(): Promise<void>;
  /** Calls `listener` once the process has exited, or right away if it already has. */
  onExit(listener: (exit: ServerExit) => void): void;
}

/** Thrown if a server fails to start. The message ends with the last lines of its log. */
export class LocalServerError extends Error {
  constructor(
    readonly server: string,
    reason: string,
    readonly log: string,
    /** How the server ended, if it ended by itself. */
    readonly exit?: { code: number | null; signal: NodeJS.Signals | null },
  ) {
    super(log === '' ? `${server} ${reason}` : `${server} ${reason}; the end of its log:\n${log}`);
    this.name = 'LocalServerError';
  }
}

/** Options of every server. */
export interface ServerOptions {
  /** The file for the server's output; each server has its own default. */
  logFile?: string;
  /** Called for an action other than starting, such as stopping a server that an earlier run left behind. */
  onNotice?: (message: string) => void;
  /** Called with the process id as soon as it exists, which is before the server is ready. */
  onSpawn?: (pid: number) => void;
}

export interface ServerPlan {
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
  /** Ends the wait for the server and stops it. */
  stopSignal?: AbortSignal;
  /** Lines of the log that an error shows. */
  shownLines?: number;
}

const LOOK_EVERY_MS = 20;

/**
 * Spawns a server and waits until it answers.
 * @throws LocalServerError if the server exits or does not answer in time; the reason of `stopSignal` if that aborts.
 */
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
  const failed = (reason: string, exit?: ServerExit) => {
    const log = tailOf(plan.logFile, Math.min(logStart, sizeOf(plan.logFile)), plan.shownLines);
    return new LocalServerError(plan.name, reason, log, exit);
  };

  const pid = child.pid;
  if (pid === undefined) throw failed(`cannot be run (${(await exited).error?.message ?? plan.command.file})`);
  plan.onSpawn?.(pid);

  const until = performance.now() + plan.readyWithinMs;
  while (!(await plan.isReady(pid))) {
    const exit = await Promise.race([exited, delay(LOOK_EVERY_MS)]);
    if (exit !== undefined) {
      throw failed(`ended before it was ready (${exit.signal ?? `exit code ${exit.code ?? '?'}`})`, exit);
    }
    if (performance.now() < until && plan.stopSignal?.aborted !== true) continue;
    await stopProcess(pid, plan.stopSteps);
    plan.stopSignal?.throwIfAborted();
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
      // 'error' is also emitted if a signal cannot be sent; the process still runs then.
      if (child.pid === undefined) resolve({ code: null, signal: null, expected: false, error });
    });
    child.once('exit', (code, signal) => resolve({ code, signal, expected: expected() }));
  });
}
