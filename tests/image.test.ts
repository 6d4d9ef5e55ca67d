import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import {
  createTestDatabase,
  eventually,
  repositoryRoot,
  spawnApp,
  startTestRedis,
  type TestApp,
} from '@callplane/testing';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

/** Tests the contents of each app's image, built by the script that the Dockerfile runs, and starts the app from it. */

const run = promisify(execFile);
const APPS = readdirSync(join(repositoryRoot, 'apps')).filter((name) =>
  existsSync(join(repositoryRoot, 'apps', name, 'src', 'config.ts')),
);
let target: string;

beforeAll(() => {
  target = mkdtempSync(join(tmpdir(), 'callplane-test-image-'));
});
afterAll(() => rmSync(target, { recursive: true, force: true }));

test('the Dockerfile installs the pnpm that package.json pins', () => {
  const dockerfile = readFileSync(join(repositoryRoot, 'infra', 'Dockerfile'), 'utf8');
  const { packageManager } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8'));
  expect(dockerfile).toContain(`npm install --global ${packageManager}\n`);
});

describe.each(APPS)('the image of %s', (name) => {
  test('contains only files that the app needs to run, no build tools, and starts', async () => {
    const root = join(target, name);
    await run('infra/image/prune.sh', [name, root], { cwd: repositoryRoot, env: withPnpm() });
    const packages = readdirSync(join(root, 'node_modules', '.pnpm'));
    for (const tool of ['typescript@', 'prisma@', '@swc', 'jest@', 'oxlint@', 'turbo@', 'vite@']) {
      expect(packages.filter((name) => name.startsWith(tool))).toEqual([]);
    }
    expect(existsSync(join(root, 'src'))).toBe(false);
    if (name === 'cli') await startsCli(root);
    else await startsApp(name, root);
  });
});

async function startsApp(name: string, root: string): Promise<void> {
  const [database, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  // A delay that no test waits for: a second signal ends it.
  const delay: Record<string, string> = name === 'api' ? { DRAIN_DELAY_MS: '300000' } : {};
  const env = { NODE_ENV: 'production', DATABASE_URL: database.url, REDIS_URL: redis.url, ...delay };
  const app = await spawnApp({ name, main: join(root, 'dist', 'main.js'), env });
  const port = new URL(['api', 'signaling'].includes(name) ? app.url : app.healthUrl).port;
  await run(process.execPath, [join(root, 'health-check.mjs')], { env: { HEALTH_CHECK_PORT: port } });
  if (name === 'api') {
    expect(readdirSync(join(root, 'console-pages'))).toContain('index.html');
    expect((await fetch(`${app.url}/openapi.json`)).status).toBe(200);
    expect((await fetch(`${app.url}/console/`)).status).toBe(200);
  }
  if (name === 'api') await acceptsUntilItDrains(app);
  else expect((await app.stop()).code).toBe(0);
  await expect(
    run(process.execPath, [join(root, 'health-check.mjs')], { env: { HEALTH_CHECK_PORT: port } }),
  ).rejects.toMatchObject({ code: 1 });
}

/** During the drain delay, an app is not ready and still takes requests over new connections. */
async function acceptsUntilItDrains(app: TestApp): Promise<void> {
  const status = async (path: string) =>
    (await fetch(`${app.url}${path}`, { headers: { connection: 'close' } })).status;
  app.kill('SIGTERM');
  await eventually(async () => (await status('/readyz')) === 503);
  expect([await status('/livez'), await status('/.well-known/jwks.json')]).toEqual([200, 200]);
  app.kill('SIGINT');
  expect((await app.exited).code).toBe(1);
}

async function startsCli(root: string): Promise<void> {
  const database = await createTestDatabase();
  const env = { NODE_ENV: 'production', DATABASE_URL: database.url, PRISMA_DIR: join(root, 'prisma') };
  const main = join(root, 'dist', 'main.js');
  const { stdout } = await run(process.execPath, [main, 'db', 'status', '--json'], { env });
  expect(JSON.parse(stdout)).toEqual({ pending: [] });
}

/**
 * `npm test` keeps pnpm in .tools, which is not in a shell's PATH. The installation has checked the lockfile against the
 * registry; pnpm would check it again for each app, which takes half of the processor time of an image.
 */
function withPnpm(): NodeJS.ProcessEnv {
  const tools = join(repositoryRoot, '.tools', 'node_modules', '.bin');
  const trusting = { NODE_OPTIONS: '', pnpm_config_trust_lockfile: 'true' };
  return { ...process.env, ...trusting, PATH: [tools, process.env['PATH']].join(delimiter) };
}
