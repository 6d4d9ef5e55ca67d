import { once } from 'node:events';
import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';
import { childrenOf } from '@callplane/local-servers';
import { chromium, type Page } from 'playwright-core';
import { root } from '../bootstrap.js';
import { cpuMs } from '../fleet/stage.js';
import { printRow } from './figures.js';

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--use-fake-ui-for-media-stream',
  '--use-fake-device-for-media-stream=device-count=3',
  '--autoplay-policy=no-user-gesture-required',
];

/** Including the time in which the participants enter. */
const SCENARIO_MS_MAX = 120_000;

/** Sums of what a page has received so far, as `meter` of page.mjs counts it. */
export interface Meter {
  atMs: number;
  frames: number;
  freezes: number;
  frozenSeconds: number;
  concealed: number;
  samples: number;
  bytes: number;
  lost: number;
  height: number;
}

/** A page of tests/browser with the SDK. */
export interface BenchPage {
  readonly page: Page;
  join(options: object): Promise<unknown>;
  meter(): Promise<Meter>;
  /** Calls a function of page.mjs. */
  ask<T>(what: string, argument?: unknown): Promise<T>;
}

/**
 * The system's Chromium, with fake devices.
 * @param camera a Y4M file that the camera shows over and over; undefined: Chromium's own pictures, which hardly move
 */
export async function openPages({ camera }: { camera?: string } = {}) {
  const server = await chromium.launchServer({
    executablePath: '/usr/bin/chromium',
    headless: true,
    args: camera === undefined ? ARGUMENTS : [...ARGUMENTS, `--use-file-for-fake-video-capture=${camera}`],
  });
  const browser = await chromium.connect(server.wsEndpoint());
  const site = await serveSite();
  const pid = server.process().pid ?? 0;
  const opened = new Set<Page>();
  return {
    /** Processor time of the browser with all of its processes so far. */
    cpuMs: () => treeOf(pid).reduce((sum, one) => sum + cpuMs(one), 0),
    async open(): Promise<BenchPage> {
      const page = await (await browser.newContext()).newPage();
      opened.add(page);
      await page.goto(site.origin);
      await page.waitForFunction('globalThis.participant !== undefined');
      const ask = <T>(what: string, argument?: unknown) =>
        page.evaluate(
          ([name, value]) => (globalThis as any).participant[name as string](value),
          [what, argument],
        ) as Promise<T>;
      return {
        page,
        ask,
        join: (options) => ask('join', options),
        meter: () => ask<Meter>('meter'),
      };
    },
    /** Whatever waits for one of the pages fails. */
    async closeAll() {
      const all = [...opened];
      opened.clear();
      await Promise.all(all.map((page) => page.context().close()));
    },
    async close() {
      await server.close();
      await site.close();
    },
  };
}

export type Pages = Awaited<ReturnType<typeof openPages>>;

/** A scenario that fails, or does not end, takes its row alone: without its pages it fails. */
export async function bounded(name: string, browsers: Pages[], measuring: () => Promise<void>): Promise<void> {
  const closeAll = () => Promise.all(browsers.map((pages) => pages.closeAll()));
  const timer = setTimeout(() => void closeAll(), SCENARIO_MS_MAX);
  try {
    await measuring();
  } catch (error) {
    const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    printRow(name, `failed: ${reason}`);
  } finally {
    clearTimeout(timer);
    await closeAll();
  }
}

async function serveSite() {
  const server = createServer((request, response) => {
    const path = normalize(request.url ?? '/');
    const file = path.startsWith('/sdk/')
      ? join(root, 'packages/client-js/dist', path.slice('/sdk'.length))
      : join(root, 'tests/browser', path);
    if (path === '/') {
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end('<!doctype html><title>Bench</title><body><script type="module" src="/page.mjs"></script>');
    } else if (/\.m?js$/.test(file) && existsSync(file)) {
      response.writeHead(200, { 'content-type': 'text/javascript' });
      createReadStream(file).pipe(response);
    } else response.writeHead(404).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Each thread has the children that it has started: Chromium starts its services on a thread of their own. */
function treeOf(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)].filter((one) => existsSync(`/proc/${one}/stat`));
}
