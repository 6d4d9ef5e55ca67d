import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { dirname } from 'node:path';
import { isAlive } from './process-table.js';
import { bound, type Command } from './unprivileged.js';

/**
 * For a process of Node that runs for seconds or minutes and uses Prisma. V8 optimises a function of Prisma's query
 * compiler, which is WebAssembly, as soon as 1.8 MB of it have run, which takes 0.5 s of processor time in the first
 * second of an API (measured). With this flag, it optimises functions that run 50 times as often.
 */
export const SHORT_RUN_FLAGS = ['--wasm-tiering-budget=90000000'];

/**
 * Recommended by docs/operations/deploy.md: stack traces name lines of TypeScript; a process takes 60 to 160 MiB
 * less than with semi-spaces of 64 MiB, for a few per cent more processor time.
 */
export const NODE_FLAGS = ['--enable-source-maps', '--max-semi-space-size=8'];

/**
 * Set by the images (infra/Dockerfile): glibc's malloc has one arena, and freed memory goes back to the kernel, because
 * V8 and the threads of Node leave up to 30 MiB of holes in a process.
 */
export const MALLOC = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '65536', MALLOC_MMAP_THRESHOLD_: '65536' };

/** One step of stopping a process: send the signal, then wait up to `graceMs` until the process is gone. */
export interface StopStep {
  signal: NodeJS.Signals;
  graceMs: number;
}

interface ServerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** True after `stop()`, false if the server died by itself or another process killed it. */
  expected: boolean;
}

/**
 * A server that runs as a child process, in a session of its own, so that Ctrl-C in the terminal does not reach it. The
 * kernel kills it when this process has ended.
 */
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
    readonly exit?: { code: number | null; signal: NodeJS.Signals | null },
  ) {
    super(log === '' ? `${server} ${reason}` : `${server} ${reason}; the end of its log:\n${log}`);
    this.name = 'LocalServerError';
  }
}

export interface ServerOptions {
  /** The file for the server's output; each server has its own default. */
  logFile?: string;
  /** Called with the process id as soon as it exists, which is before the server is ready. */
  onSpawn?: (pid: number) => void;
}

export interface ServerPlan {
  name: string;
  port: number;
  url: string;
  command: Command;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  logFile: string;
  /** Gets each line of the output, which the log file gets as well. */
  onLine?: (line: string) => void;
  /** Resolves to true once the server answers. Called every 20 ms, so it must be cheap and must not throw. */
  isReady: (pid: number) => Promise<boolean>;
  readyWithinMs?: number;
  /** The signal that the kernel sends when this process has ended. `KILL` by default. */
  deathSignal?: 'TERM';
  /** By default SIGTERM, and SIGKILL five seconds later. */
  stopSteps?: StopStep[];
  onSpawn: ((pid: number) => void) | undefined;
  /** Ends the wait for the server and stops it. */
  stopSignal?: AbortSignal;
  /** Lines of the log that an error shows. */
  shownLines?: number;
}

const LOOK_EVERY_MS = 20;
const READY_WITHIN_MS = 60_000;
const STOP_STEPS: StopStep[] = [
  { signal: 'SIGTERM', graceMs: 5_000 },
  { signal: 'SIGKILL', graceMs: 5_000 },
];

/**
 * Spawns a server and waits until it answers.
 * @throws LocalServerError if the server exits or does not answer in time; the reason of `stopSignal` if that aborts.
 */
export async function startServer(plan: ServerPlan): Promise<LocalServer> {
  const { readyWithinMs = READY_WITHIN_MS, stopSteps = STOP_STEPS } = plan;
  const logStart = sizeOf(plan.logFile);
  const child = spawnBound(plan);
  let stopping = false;
  const exited = exitOf(child, () => stopping);
  const failed = (reason: string, exit?: ServerExit) => {
    const log = tailOf(plan.logFile, Math.min(logStart, sizeOf(plan.logFile)), plan.shownLines);
    return new LocalServerError(plan.name, reason, log, exit);
  };

  const pid = child.pid;
  if (pid === undefined) throw failed(`cannot be run (${(await exited).error?.message ?? plan.command.file})`);
  plan.onSpawn?.(pid);

  const until = performance.now() + readyWithinMs;
  while (!(await plan.isReady(pid))) {
    const exit = await Promise.race([exited, delay(LOOK_EVERY_MS)]);
    if (exit !== undefined) {
      throw failed(`ended before it was ready (${exit.signal ?? `exit code ${exit.code ?? '?'}`})`, exit);
    }
    if (performance.now() < until && plan.stopSignal?.aborted !== true) continue;
    await stopProcess(pid, stopSteps);
    plan.stopSignal?.throwIfAborted();
    throw failed(`was not ready within ${readyWithinMs / 1000} s`);
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
        if (child.exitCode === null && child.signalCode === null) await stopProcess(pid, stopSteps);
        await exited;
      })()),
    onExit: (listener) => void exited.then(listener),
  };
}

/** A child that writes to a file neither blocks on a slow reader nor dies of a closed pipe. */
function spawnBound({ command, env = process.env, cwd = '/', logFile, onLine, deathSignal }: ServerPlan): ChildProcess {
  const { file, args, options } = bound(command, deathSignal);
  const common = { ...options, env, cwd, detached: true };
  if (onLine === undefined) {
    const log = openLog(logFile);
    const child = spawn(file, args, { ...common, stdio: ['ignore', log, log] });
    closeSync(log);
    return child;
  }
  const child = spawn(file, args, { ...common, stdio: ['ignore', 'pipe', 'pipe'] });
  const write = lineWriter(logFile);
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      write(line);
      onLine(line);
    });
  }
  return child;
}

/** Sends each signal in turn until the process is gone. SIGCONT thaws a frozen process, so that it can react. */
async function stopProcess(pid: number, steps: StopStep[]): Promise<void> {
  for (const { signal, graceMs } of steps) {
    try {
      process.kill(pid, signal);
      process.kill(pid, 'SIGCONT');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return;
      throw error;
    }
    const until = performance.now() + graceMs;
    while (isAlive(pid) && performance.now() < until) await delay(LOOK_EVERY_MS);
    if (!isAlive(pid)) return;
  }
  throw new Error(`process ${pid} did not stop`);
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

const KEPT_BYTES_MAX = 5 * 1024 * 1024;
/** Of a file that is written to, before another one begins. */
const WRITTEN_BYTES_MAX = 50 * 1024 * 1024;

/**
 * Opens a log file for appending (mode 0600) and returns its descriptor. Renames a file of more than 5 MiB to `<file>.1`
 * first.
 */
function openLog(file: string): number {
  mkdirSync(dirname(file), { recursive: true });
  if (sizeOf(file) > KEPT_BYTES_MAX) renameSync(file, `${file}.1`);
  return openSync(file, 'a', 0o600);
}

function lineWriter(file: string): (line: string) => void {
  let log = openLog(file);
  let bytes = sizeOf(file);
  return (line) => {
    // A full disk or a deleted folder must not end the supervisor of the apps.
    try {
      bytes += writeSync(log, `${line}\n`);
      if (bytes < WRITTEN_BYTES_MAX) return;
      closeSync(log);
      log = openLog(file);
      bytes = 0;
    } catch {
      return;
    }
  };
}

/** The last lines of a log file, counted from a byte offset; '' if there are none. */
function tailOf(file: string, fromByte = 0, lines = 20): string {
  try {
    const text = readFileSync(file).subarray(fromByte).toString('utf8').trimEnd();
    return text.split('\n').slice(-lines).join('\n');
  } catch {
    return '';
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
