import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { closeSync, openSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { freePort } from '@callplane/local-servers';
import {
  appMain,
  eventually,
  repositoryRoot,
  stopAtEnd,
  temporaryDirectory,
  TEST_ENCRYPTION_KEYS,
} from '@callplane/testing';
import { startStack } from './faults.testkit.js';

function start(file: string, args: string[], stdio: StdioOptions, env: Record<string, string> = {}): ChildProcess {
  const child = spawn(file, args, { cwd: repositoryRoot, stdio, env: { PATH: process.env['PATH'], ...env } });
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  stopAtEnd(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return child;
}

/** A process that writes numbered lines of 200 bytes through Callplane's logger until it is killed. */
const CHATTERBOX = `
  import { createLogger } from '${join(repositoryRoot, 'packages/runtime/dist/logging/logger.js')}';
  import { droppedLogLines } from '${join(repositoryRoot, 'packages/runtime/dist/logging/line-writer.js')}';
  const logger = createLogger({ LOG_LEVEL: 'info', LOG_FORMAT: 'json' }, 'test');
  let n = 0;
  setInterval(() => { for (let i = 0; i < 50; i += 1) logger.info('line', { n: (n += 1), filler: 'x'.repeat(120) }); }, 5);
  setInterval(() => process.send?.({ n, dropped: droppedLogLines(), rss: process.memoryUsage.rss(), buffered: process.stdout.writableLength }), 20);
`;
interface Report {
  n: number;
  dropped: number;
  rss: number;
  buffered: number;
}
function reports(child: ChildProcess): () => Report | undefined {
  let last: Report | undefined;
  child.on('message', (message) => (last = message as Report));
  return () => last;
}

test('an app keeps serving while the disk behind its standard output and error is full, and counts the dropped lines', async () => {
  const stack = await startStack();
  const full = openSync('/dev/full', 'w');
  const [port, metricsPort] = [await freePort(), await freePort()];
  const child = start(process.execPath, [appMain('api')], ['ignore', full, full], {
    DATABASE_URL: stack.databaseUrl,
    REDIS_URL: stack.redis.url,
    ENCRYPTION_KEYS: TEST_ENCRYPTION_KEYS,
    NODE_ENV: 'test',
    HOST: '127.0.0.1',
    LOG_FORMAT: 'json',
    LOG_LEVEL: 'debug',
    PORT: String(port),
    METRICS_PORT: String(metricsPort),
  });
  closeSync(full);
  const status = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status;
  await eventually(async () => (await status()) === 200);
  for (let n = 0; n < 20; n += 1) expect(await status()).toBe(200);
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const dropped = Number(/^callplane_log_lines_dropped_total\{.*\} (\d+)$/m.exec(text)?.[1]);
  expect(dropped).toBeGreaterThan(0);
  expect([child.exitCode, child.signalCode]).toEqual([null, null]);
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  expect(await exited).toBe(0);
});

test('whole lines are written again as soon as there is space, and one reports the loss', async () => {
  const file = join(temporaryDirectory('log'), 'log');
  writeFileSync(file, '');
  const out = openSync(file, 'a');
  // A kernel limit on the file size: writes beyond it fail in the middle of a line, as on a full disk.
  const limited = ['-c', 'ulimit -f 64; exec "$0" "$@"', process.execPath, '--input-type=module', '-e', CHATTERBOX];
  const child = start('/bin/sh', limited, ['ignore', out, 'ignore', 'ipc']);
  closeSync(out);
  const report = reports(child);
  await eventually(() => (report()?.dropped ?? 0) > 100);
  truncateSync(file);
  const lines = await eventually(() => {
    const read = readFileSync(file, 'utf8').split('\n').slice(1, -1);
    return read.some((line) => line.includes('log lines dropped')) && read.length > 20 ? read : null;
  });
  for (const line of lines) expect(() => JSON.parse(line)).not.toThrow();
  const dropped = lines.map((line) => JSON.parse(line)).find(({ message }) => message === 'log lines dropped');
  expect(dropped).toMatchObject({ level: 'warn', count: expect.any(Number) });
  expect(child.exitCode).toBeNull();
});
