import { spawn } from 'node:child_process';
import { mkdtempSync, chmodSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { freePort, startPostgres, startRedis } from '@callplane/local-servers';
import { root } from '../lib/files.mjs';
import { NODE_FLAGS } from '../start/app.mjs';

/**
 * Real servers and processes of one benchmark, all stopped by `close`. PostgreSQL is durable: a commit waits for the
 * disk, as in production.
 */
export async function openStage() {
  const dir = mkdtempSync(join(tmpdir(), 'callplane-bench-'));
  chmodSync(dir, 0o755);
  /** @type {(() => Promise<unknown>)[]} */
  const closers = [];
  /** @type {{ script: string, stop: () => Promise<void> }[]} */
  const running = [];
  const postgres = await startPostgres({
    dataDir: join(dir, 'postgres'),
    port: await freePort(),
    password: randomBytes(16).toString('hex'),
    durable: true,
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

  /**
   * Runs a script of the repository, apps and floors alike as apps are run, with logs thrown away, until `url` answers.
   * @param {string} script
   * @param {Record<string, string>} env
   * @param {string} readyUrl
   */
  async function run(script, env, readyUrl) {
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

  /** @param {string[]} args */
  async function rtc(...args) {
    const child = spawn(process.execPath, [join(root, 'apps/cli/dist/main.js'), ...args, '--json'], {
      env: { PATH: process.env.PATH, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => (text += chunk));
    const code = await new Promise((resolve) => child.once('close', resolve));
    if (code !== 0) throw new Error(`rtc ${args.join(' ')} exited with ${code}`);
    return JSON.parse(text);
  }

  return {
    dir,
    environment,
    /** For servers of one benchmark alone. @param {() => Promise<unknown>} close */
    onClose: (close) => void closers.push(close),
    run,
    rtc,
    /** How many processes of an app run. @param {string} app */
    running: (app) => running.filter(({ script }) => script.includes(app)).length,
    /** Stops all processes of an app but the first. @param {string} app */
    async stopOthers(app) {
      const others = running.filter(({ script }) => script.includes(app)).slice(1);
      await Promise.all(others.map(({ stop }) => stop()));
      for (const each of others) running.splice(running.indexOf(each), 1);
    },
    async close() {
      for (const close of closers.reverse()) await close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/**
 * @param {number[]} values
 * @returns {number}
 */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (/** @type {number} */ index) => sorted[index] ?? NaN;
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? at(middle) : (at(middle - 1) + at(middle)) / 2;
}
