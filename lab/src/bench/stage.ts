import { spawn } from 'node:child_process';
import { mkdtempSync, chmodSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { freePort, NODE_FLAGS, startPostgres, startRedis } from '@callplane/local-servers';
import { root } from '../bootstrap.js';

/**
 * The real servers and processes of one benchmark; `close` stops them all. PostgreSQL is durable: a commit waits for
 * the disk, as in production.
 * @param postgresSettings more settings of PostgreSQL, such as `work_mem=8MB`.
 */
export async function openStage({ postgresSettings = [] }: { postgresSettings?: string[] } = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'callplane-bench-'));
  chmodSync(dir, 0o755);
  const closers: (() => Promise<unknown>)[] = [];
  const running: { script: string; stop: () => Promise<void> }[] = [];
  const postgres = await startPostgres({
    dataDir: join(dir, 'postgres'),
    port: await freePort(),
    password: randomBytes(16).toString('hex'),
    durable: true,
    settings: postgresSettings,
  });
  closers.push(() => postgres.stop());
  const redis = await startRedis({
    dir: join(dir, 'redis'),
    port: await freePort(),
    password: randomBytes(16).toString('hex'),
  });
  closers.push(() => redis.stop());
  const environment = {
    NODE_ENV: 'production',
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    RATE_LIMIT_READS_PER_SECOND: '0',
    RATE_LIMIT_WRITES_PER_SECOND: '0',
    LOG_FORMAT: 'json',
  };

  /** Runs a script of the repository until `url` answers. Apps and floors run alike, with their logs discarded. */
  async function run(script: string, env: Record<string, string>, readyUrl: string) {
    const child = spawn(process.execPath, [...NODE_FLAGS, join(root, script)], {
      env: { PATH: process.env.PATH, ...environment, ...env },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const gone = new Promise((resolve) => child.once('exit', resolve));
    const stop = async () => {
      child.kill('SIGTERM');
      await gone;
    };
    closers.push(stop);
    running.push({ script, stop });
    for (;;) {
      if (child.exitCode !== null) throw new Error(`${script} exited with ${child.exitCode}`);
      const ok = await fetch(readyUrl).then(
        (response) => response.ok,
        () => false,
      );
      if (ok) return child;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async function rtc(...args: string[]) {
    const child = spawn(process.execPath, [join(root, 'apps/cli/dist/main.js'), ...args, '--json'], {
      env: { PATH: process.env.PATH, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => (text += chunk));
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    if (code !== 0) throw new Error(`rtc ${args.join(' ')} exited with ${code ?? 'a signal'}`);
    return JSON.parse(text);
  }

  return {
    dir,
    environment,
    postgres,
    redis,
    /** Registers a server of one benchmark, to be stopped by `close`. */
    onClose: (close: () => Promise<unknown>) => void closers.push(close),
    run,
    rtc,
    /** Freezes Redis, or lets it go on. */
    signalRedis: (signal: 'SIGSTOP' | 'SIGCONT') => process.kill(redis.pid, signal),
    /** The number of running processes of an app. */
    running: (app: string) => running.filter(({ script }) => script.includes(app)).length,
    /** Stops all processes of an app but the first ones. */
    async stopOthers(app: string, kept = 1) {
      const others = running.filter(({ script }) => script.includes(app)).slice(kept);
      await Promise.all(others.map(({ stop }) => stop()));
      for (const each of others) running.splice(running.indexOf(each), 1);
    },
    async close() {
      for (const close of closers.reverse()) await close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (index: number) => sorted[index] ?? NaN;
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? at(middle) : (at(middle - 1) + at(middle)) / 2;
}
