import { once } from 'node:events';
import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { BROWSER_PROGRAM, eventually, repositoryRoot, stopAtEnd } from '@callplane/testing';

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--use-fake-ui-for-media-stream',
  // The second of them has depth pictures, which no encoder takes.
  '--use-fake-device-for-media-stream=device-count=3',
  '--auto-select-desktop-capture-source=Entire screen',
];
const AUTOPLAY = '--autoplay-policy=no-user-gesture-required';

/** Counters by name of the sender. */
type Received = Record<string, { packets: number; frames: number; samples: number }>;

export interface JoinOptions {
  url: string;
  token: string;
  publish?: boolean | { audio?: boolean; video?: boolean | MediaTrackConstraints; simulcast?: boolean };
  iceTransportPolicy?: 'relay';
  /** The port at which relays are reached, such as that of a shaper. */
  relayThrough?: number;
  requireMedia?: boolean;
  autoSubscribe?: boolean;
  adaptive?: boolean;
  /** Selects one of the hostile clients of page.mjs. */
  hostile?: string;
}

interface PageEvent {
  name: string;
  what: any;
  by?: string;
  atMs: number;
}

/** A browser page with the SDK. */
export interface ParticipantPage {
  readonly page: Page;
  join(options: JoinOptions): Promise<{ sessionId: string; participantId: string }>;
  /** Calls a function of page.mjs. */
  ask<T = any>(what: string, argument?: unknown): Promise<T>;
  events(): Promise<PageEvent[]>;
  close(): Promise<void>;
}

export interface Browsers {
  readonly browser: Browser;
  newParticipant(): Promise<ParticipantPage>;
  newPage(options?: BrowserContextOptions): Promise<Page>;
}

/**
 * Starts the Chromium of this test file, with fake microphones, cameras and a screen.
 * @param options.autoplay whether pages may play sound without a gesture of the user
 * @param options.more more arguments of Chromium
 */
export async function openBrowser({ autoplay = true, more = [] as string[] } = {}): Promise<Browsers> {
  const args = [...ARGUMENTS, ...more, ...(autoplay ? [AUTOPLAY] : [])];
  // Playwright itself allows sound without a gesture.
  const ignoreDefaultArgs = autoplay ? [] : [AUTOPLAY];
  const browser = await chromium.launch({ executablePath: BROWSER_PROGRAM, headless: true, args, ignoreDefaultArgs });
  stopAtEnd(() => browser.close());
  const origin = await servePage();
  const newPage = async (options: BrowserContextOptions = {}) => {
    const context = await browser.newContext(options);
    return context.newPage();
  };
  return {
    browser,
    newPage,
    async newParticipant() {
      const page = await newPage();
      await page.goto(origin);
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
        events: () => ask('events'),
        close: () => page.context().close(),
      };
    },
  };
}

/** Resolves once every counter of every participant has grown for each of the others since the call. */
export async function mediaFlows(
  participants: ParticipantPage[],
  {
    timeoutMs = 60_000,
    kinds = ['packets', 'frames', 'samples'],
  }: { timeoutMs?: number; kinds?: ('packets' | 'frames' | 'samples')[] } = {},
): Promise<void> {
  await Promise.all(
    participants.map(async (one) => {
      let first: Received | undefined;
      await eventually(
        async () => {
          const now = await one.ask<Received>('received');
          const names = Object.keys(now);
          if (names.length !== participants.length - 1) throw new Error(`sees ${names.join(', ') || 'nobody'}`);
          // Counters of a new connection start at zero, so growth is measured against the lowest value seen.
          first ??= now;
          for (const name of names) {
            for (const kind of kinds) {
              const before = Math.min(first[name]?.[kind] ?? 0, now[name]![kind]);
              if (first[name] !== undefined) first[name][kind] = before;
              if (now[name]![kind] <= before) throw new Error(`${kind} of ${name} do not grow: ${JSON.stringify(now)}`);
            }
          }
          return true;
        },
        { timeoutMs, intervalMs: 150 },
      );
    }),
  );
}

async function servePage(): Promise<string> {
  const files: Record<string, string> = { '/page.mjs': join(import.meta.dirname, 'page.mjs') };
  const sdk = join(repositoryRoot, 'packages', 'client-js', 'dist');
  return serve(
    '<script type="module" src="/page.mjs"></script>',
    (path) => files[path] ?? (path.startsWith('/sdk/') ? join(sdk, path.slice('/sdk'.length)) : ''),
  );
}

/** Serves the scripts of a folder beside an empty page. */
export function serveFolder(folder: string): Promise<string> {
  return serve('', (path) => join(folder, path));
}

/** @param fileOf the script at a path */
async function serve(body: string, fileOf: (path: string) => string): Promise<string> {
  const server = createServer((request, response) => {
    const path = normalize(request.url ?? '/');
    if (path === '/') {
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end(`<!doctype html><title>Participant</title><body>${body}</body>`);
      return;
    }
    const file = fileOf(path);
    if (!existsSync(file) || !/^\.m?js$/.test(extname(file))) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': 'text/javascript' });
    createReadStream(file).pipe(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stopAtEnd(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
