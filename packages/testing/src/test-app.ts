import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { bound, freePort, redisUrlOf, SHORT_RUN_FLAGS } from '@callplane/local-servers';
import { eventually } from './eventually.js';
import { repositoryRoot, stopAtEnd } from './resources.js';

export interface TestAppOptions {
  /** A folder of apps/, such as `api`. */
  name: string;
  /** Its compiled entry point; by default appMain(). */
  main?: string;
  /** Added to the defaults below. Pass DATABASE_URL and REDIS_URL here; the app logs in to Redis with its own user. */
  env: Record<string, string>;
  /** Wait for /readyz (default true). Set false for an app that refuses to start. */
  untilReady?: boolean;
}

/** A line of an app's JSON log. */
export type LogLine = Record<string, unknown> & { level: string; message: string };

interface AppExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** One of the apps, run as a process as in production. */
export interface TestApp {
  readonly name: string;
  readonly pid: number;
  /** `http://127.0.0.1:<PORT>`; answers for apps that serve HTTP. */
  readonly url: string;
  /** `http://127.0.0.1:<HEALTH_PORT>`; answers for apps that serve nothing else. */
  readonly healthUrl: string;
  /** `http://127.0.0.1:<METRICS_PORT>/metrics` */
  readonly metricsUrl: string;
  /** Every JSON line written so far. */
  readonly logs: readonly LogLine[];
  /** Everything written so far to standard output and standard error. */
  output(): string;
  /** Resolves once a log line matches, including earlier lines; throws after 60 s. */
  waitForLog(matches: (line: LogLine) => boolean): Promise<LogLine>;
  kill(signal: NodeJS.Signals): void;
  /** SIGSTOP: its connections stay open and it does nothing. */
  freeze(): void;
  thaw(): void;
  /** SIGTERM (after thawing), SIGKILL after 15 s. Idempotent; called at the end of the test file. */
  stop(): Promise<AppExit>;
  /** Resolves once the process is gone, for whatever reason. */
  readonly exited: Promise<AppExit>;
}

/**
 * The compiled entry point of an app, as images and `npm start` run it; the image's if CALLPLANE_TEST_IMAGES names a
 * folder with the file system of the app's image.
 */
export function appMain(name: string): string {
  const image = join(process.env['CALLPLANE_TEST_IMAGES'] ?? '', name);
  const isImage = process.env['CALLPLANE_TEST_IMAGES'] !== undefined && existsSync(image);
  return join(isImage ? image : join(repositoryRoot, 'apps', name), 'dist', 'main.js');
}

/** An `ENCRYPTION_KEYS` value for tests. */
export const TEST_ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`;

/** The log message of an app that listens or works from now on. */
const STARTED = ['listening', 'working'];
/** Above the start of an app on a slow machine. */
const READY_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 15_000;
/** How often an app is spawned whose ports are taken. */
const PORT_TRIES = 3;

/**
 * Runs an app on free ports and waits until it is ready.
 * @throws Error with the app's output if the app exits or does not become ready in time.
 */
export async function spawnApp(options: TestAppOptions): Promise<TestApp> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await spawnOnce(options);
    } catch (error) {
      // Another process may have taken a port since it was chosen.
      if (tries === PORT_TRIES || !String(error).includes('EADDRINUSE')) throw error;
    }
  }
}

/** The cache of compiled code of `npm test`, with which an app starts with less processor time. */
function compileCache(): NodeJS.ProcessEnv {
  const folder = process.env['CALLPLANE_TEST_COMPILE_CACHE'];
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
}

/** Records the statements of the app if Jest's workers do so. */
function recording(): NodeJS.ProcessEnv {
  const folder = process.env['CALLPLANE_STATEMENTS'];
  if (folder === undefined) return {};
  const recorder = join(repositoryRoot, 'packages/testing/jest/record-statements.mjs');
  return { CALLPLANE_STATEMENTS: folder, NODE_OPTIONS: `--import ${recorder}` };
}

async function spawnOnce({ name, main = appMain(name), env, untilReady = true }: TestAppOptions): Promise<TestApp> {
  if (!existsSync(main)) throw new Error(`${main} is not there: run \`npm run build\``);
  const ports = { PORT: await freePort(), HEALTH_PORT: await freePort(), METRICS_PORT: await freePort() };
  const flags = ['--enable-source-maps', ...SHORT_RUN_FLAGS];
  const { file, args } = bound({ file: process.execPath, args: [...flags, main], options: {} });
  const child = spawn(file, args, {
    cwd: repositoryRoot,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      NODE_ENV: 'test',
      ...compileCache(),
      ...recording(),
      HOST: '127.0.0.1',
      HEALTH_HOST: '127.0.0.1',
      LOG_FORMAT: 'json',
      // No load balancer holds idle connections open, so a short wait is enough.
      DRAIN_IDLE_MS: '500',
      MEDIA_ALLOW_OUTDATED: 'true',
      ENCRYPTION_KEYS: TEST_ENCRYPTION_KEYS,
      PORT: String(ports.PORT),
      HEALTH_PORT: String(ports.HEALTH_PORT),
      METRICS_PORT: String(ports.METRICS_PORT),
      ...env,
      ...(env['REDIS_URL'] === undefined ? {} : { REDIS_URL: redisUrlOf(env['REDIS_URL'], name) }),
    },
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${name} cannot be spawned`);

  let text = '';
  let unread = '';
  const parsedLogs: LogLine[] = [];
  // Parsed when they are asked for: most tests look at few lines.
  const logs = () => {
    const lines = unread.split('\n');
    unread = lines.pop() ?? '';
    for (const line of lines) {
      const parsed = parseLine(line);
      if (parsed !== undefined) parsedLogs.push(parsed);
    }
    return parsedLogs;
  };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    unread += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });

  let exit: AppExit | undefined;
  // 'close' and not 'exit': by then all of its output has been read.
  const exited = new Promise<AppExit>((resolve) => {
    child.once('close', (code, signal) => {
      exit = { code, signal };
      resolve(exit);
    });
  });
  const kill = (signal: NodeJS.Signals) => void child.kill(signal);
  const stop = async () => {
    if (exit !== undefined) return exit;
    kill('SIGTERM');
    kill('SIGCONT');
    const timer = setTimeout(() => kill('SIGKILL'), STOP_WITHIN_MS);
    const how = await exited;
    clearTimeout(timer);
    return how;
  };
  stopAtEnd(stop);

  const app: TestApp = {
    name,
    pid,
    url: `http://127.0.0.1:${env['PORT'] ?? ports.PORT}`,
    healthUrl: `http://127.0.0.1:${env['HEALTH_PORT'] ?? ports.HEALTH_PORT}`,
    metricsUrl: `http://127.0.0.1:${env['METRICS_PORT'] ?? ports.METRICS_PORT}/metrics`,
    get logs() {
      return logs();
    },
    output: () => text,
    waitForLog: (matches) => eventually(() => logs().find(matches)),
    kill,
    freeze: () => kill('SIGSTOP'),
    thaw: () => kill('SIGCONT'),
    stop,
    exited,
  };
  if (untilReady) await ready(app, () => exit);
  return app;
}

async function ready(app: TestApp, exitOf: () => AppExit | undefined): Promise<void> {
  const until = performance.now() + READY_WITHIN_MS;
  let looks = 1;
  for (;;) {
    const exit = exitOf();
    if (exit !== undefined) {
      throw new Error(`${app.name} exited (${exit.signal ?? `code ${exit.code ?? '?'}`}):\n${app.output()}`);
    }
    // The log tells when to ask, unless a test turns it off: each request costs both processes a millisecond.
    if (looks++ % 10 === 0 || app.logs.some(({ message }) => STARTED.includes(message))) {
      // Apps that serve HTTP answer on PORT, workers on HEALTH_PORT.
      const answers = await Promise.all([app.url, app.healthUrl].map((base) => statusOf(`${base}/readyz`)));
      if (answers.includes(200)) return;
    }
    if (performance.now() > until) {
      await app.stop();
      throw new Error(`${app.name} was not ready within ${READY_WITHIN_MS} ms:\n${app.output()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** The status of a GET, or 0 if no answer comes within 2 s. */
async function statusOf(url: string): Promise<number> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000), headers: { connection: 'close' } });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

function parseLine(line: string): LogLine | undefined {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return undefined;
  }
}
