import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from '@jest/globals';
import {
  appMain,
  createTestTenant,
  repositoryRoot,
  startTcpProxy,
  startTestCoturn,
  startTestJanus,
  type TestApp,
} from '@callplane/testing';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { openBrowser } from '../browser/pages.testkit.js';
import { mediaSettings, signalingUrl } from '../browser/stage.testkit.js';
import { startWebhookStack } from '../faults/webhooks.testkit.js';

/** Set `CALLPLANE_SCREENSHOTS` to the folder that gets pictures of every page; git holds four of them, in docs/console. */
const pictures = process.env['CALLPLANE_SCREENSHOTS'];
const AXE = readFileSync(join(repositoryRoot, 'node_modules', 'axe-core', 'axe.min.js'), 'utf8');

export type ConsoleStage = Awaited<ReturnType<typeof openConsole>>;

/** A running service, a browser, and two tenants. One for all test cases of the console. */
export async function openConsole() {
  const [stack, janus, coturn, browsers] = await Promise.all([
    startWebhookStack(),
    startTestJanus(),
    startTestCoturn(),
    openBrowser(),
  ]);
  const [tenant, other] = [stack.tenant, await createTestTenant(stack.database)];
  const env = mediaSettings(janus, coturn);
  const [signaling] = await Promise.all([
    stack.spawnSignaling(env),
    stack.spawnWorker(env),
    stack.spawnWebhookWorker(),
  ]);
  const gateway = signalingUrl(new URL(signaling.url).port);
  const startApi = () => stack.spawnApi({ ...env, CONSOLE_SIGNALING_URL: gateway });
  let api: TestApp = await startApi();
  const targetOf = ({ url }: TestApp) => ({ host: '127.0.0.1', port: Number(new URL(url).port) });
  const targets = [targetOf(api)];
  const proxy = await startTcpProxy(targets);
  const origin = `http://127.0.0.1:${proxy.port}`;

  const problems: string[] = [];
  const stage = {
    /** Of the console: behind a proxy, which stays while the API restarts. */
    origin,
    tenant,
    other,
    /** Errors of pages, and refusals by the content security policy, as browsers reported them. */
    problems,
    database: stack.database,
    /** Calls the API with the key of the first tenant. */
    call: (method: string, path: string, body?: object): Promise<{ status: number; body: any }> =>
      stack.call(api, method, path, body === undefined ? {} : { body }),
    async newRoom(name: string): Promise<string> {
      const { status, body } = await stage.call('POST', '/v1/rooms', { name });
      expect(status).toBe(201);
      return String(body.id);
    },
    async newPage(options: BrowserContextOptions = {}): Promise<Page> {
      const page = await browsers.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: 'light', ...options });
      page.on('pageerror', (error) => problems.push(`${page.url()}: ${error.message}`));
      page.on('console', (message) => {
        if (/content security policy/i.test(message.text())) problems.push(`${page.url()}: ${message.text()}`);
      });
      return page;
    },
    /** A page of a new session, at a path of the console. */
    async signIn(path = '/', { key = tenant.key, readOnly = false } = {}): Promise<Page> {
      const page = await stage.newPage();
      await page.goto(`${origin}/console${path}`);
      await page.getByLabel('Secret API key').fill(key);
      if (readOnly) await page.getByLabel('Read only').check();
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('navigation').waitFor();
      return page;
    },
    /** The link that `rtc console login` prints. */
    async loginLink() {
      const options = ['--env', tenant.environmentId, '--url', origin, '--json'];
      const environment = { PATH: process.env['PATH'], DATABASE_URL: stack.databaseUrl };
      const args = [appMain('cli'), 'console', 'login', ...options];
      const { stdout } = await promisify(execFile)(process.execPath, args, { env: environment });
      return String(JSON.parse(stdout).url);
    },
    /** Stops the API, runs `meanwhile`, and starts another one. */
    async restartApi(meanwhile: () => Promise<void>) {
      await api.stop();
      await meanwhile();
      api = await startApi();
      targets.splice(0, 1, targetOf(api));
    },
  };
  return stage;
}

export const heading = (page: Page, name: string) =>
  page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
export const confirm = (page: Page, name: string) =>
  page.getByRole('dialog').last().getByRole('button', { name }).click();

/**
 * Checks a page in both colour schemes with axe, and that nothing overflows at the widths of a phone, a laptop and a
 * large screen.
 * @param name of the pictures
 */
export async function inspect(page: Page, name: string): Promise<void> {
  const { width } = page.viewportSize()!;
  // A page whose file or first answer is still on its way has no heading yet, or bars in its place.
  await page.getByRole('heading', { level: 1 }).first().waitFor();
  await page.locator('main .loading').first().waitFor({ state: 'detached' });
  await page.evaluate(AXE);
  await page.evaluate('scrollTo(0, 0)');
  for (const [pictureWidth, height] of [
    [390, 844],
    [1280, 800],
    [1920, 1080],
  ] as const) {
    await page.setViewportSize({ width: pictureWidth, height });
    expect([name, await page.evaluate('document.documentElement.scrollWidth - innerWidth')]).toEqual([name, 0]);
    for (const colorScheme of ['dark', 'light'] as const) {
      if (pictures === undefined && pictureWidth !== 1280) continue;
      await page.emulateMedia({ colorScheme });
      if (pictures !== undefined) {
        await page.screenshot({ path: join(pictures, `${name}-${pictureWidth}-${colorScheme}.png`) });
      }
      // The structure is the same at all widths and in both schemes; only colours depend on the scheme.
      if (pictureWidth === 1280) expect([name, await violationsOf(page, colorScheme === 'dark')]).toEqual([name, []]);
    }
  }
  await page.setViewportSize({ width, height: 800 });
}

async function violationsOf(page: Page, onlyColours: boolean): Promise<string[]> {
  const options = onlyColours ? { runOnly: ['color-contrast'] } : {};
  return page.evaluate(async (given) => {
    const { violations } = await (globalThis as any).axe.run(document, given);
    return violations.flatMap(({ id, nodes }: any) => nodes.map(({ html }: any) => `${id}: ${html.slice(0, 200)}`));
  }, options);
}
