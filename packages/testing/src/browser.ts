import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { eventually } from './eventually.js';
import { repositoryRoot } from './resources.js';
import { listenUntilEnd } from './sockets.js';

/**
 * The browser of the tests: Chromium without a user interface. The same engine as /usr/bin/chromium, with the same media,
 * at half the processor time.
 */
export const BROWSER_PROGRAM = '/usr/bin/chromium-headless-shell';

/** Allows pages to play sound without a gesture of the user. */
export const AUTOPLAY = '--autoplay-policy=no-user-gesture-required';

/** Arguments that give Chromium fake microphones, cameras and a screen. */
export const CHROMIUM_ARGUMENTS = [
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
  AUTOPLAY,
];

/** The part of Playwright's `Page` that leads to the functions of tests/browser/page.mjs. */
interface ScriptedPage {
  goto(url: string): Promise<unknown>;
  evaluate(run: (call: [what: string, argument: unknown]) => unknown, call: [string, unknown]): Promise<unknown>;
}

/** Calls a function of tests/browser/page.mjs. */
export type Ask = <T>(what: string, argument?: unknown) => Promise<T>;

/** Loads tests/browser/page.mjs with the SDK into a page, from the site of `servePage`. */
export async function askPage(page: ScriptedPage, origin: string): Promise<Ask> {
  const isLoaded = () => (globalThis as unknown as { participant?: object }).participant !== undefined;
  // Chromium drops what it loads when an interface comes or goes, as in tests with network namespaces.
  await eventually(async () => {
    await page.goto(origin);
    return page.evaluate(isLoaded, ['', undefined]);
  });
  const ask = (what: string, argument?: unknown): Promise<unknown> =>
    page.evaluate(
      ([name, value]) =>
        (globalThis as unknown as { participant: Record<string, (value: unknown) => unknown> }).participant[name]?.(
          value,
        ),
      [what, argument],
    );
  return ask as Ask;
}

/** The page with a content security policy that allows neither `blob:` nor `unsafe-eval`. */
export const STRICT_PAGE = 'strict';

export interface Site {
  origin: string;
  close(): Promise<void>;
}

/** Serves an empty page that loads tests/browser/page.mjs with the SDK. */
export function servePage(): Promise<Site> {
  const sdk = join(repositoryRoot, 'packages', 'client-js', 'dist');
  const fileOf = (path: string): string => {
    if (path === '/page.mjs' || path === '/spy-worker.mjs') return join(repositoryRoot, 'tests', 'browser', path);
    return path.startsWith('/sdk/') ? join(sdk, path.slice('/sdk'.length)) : '';
  };
  return serveScripts('<script type="module" src="/page.mjs"></script>', fileOf);
}

/**
 * Serves scripts beside an empty page with this body.
 * @param fileOf the script at a path
 */
export async function serveScripts(body: string, fileOf: (path: string) => string): Promise<Site> {
  const server = createServer((request, response) => {
    const path = normalize(request.url ?? '/');
    if (path === '/' || path === `/${STRICT_PAGE}`) {
      const policy = { 'content-security-policy': "script-src 'self'; worker-src 'self'" };
      response.writeHead(200, { 'content-type': 'text/html', ...(path === '/' ? {} : policy) });
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
  const { origin, close } = await listenUntilEnd(server);
  return { origin: `${origin}/`, close };
}
