import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { freePort } from '@callplane/local-servers';
import { eventually, listenUntilEnd, repositoryRoot, stopAtEnd, temporaryDirectory } from '@callplane/testing';
import { openBrowser, type Browsers } from './pages.testkit.js';
import { openStage, type Stage } from './stage.testkit.js';

/**
 * The examples of @callplane/react as users build them, from the packed tarballs: a page of Vite and one of Next in a call
 * with each other, plain and encrypted.
 *
 * Next is not a dependency of this repository: pnpm downloads it once and then links it out of its store. To save time, it
 * comes without its optional packages but for the compiler, and its pages are not TypeScript.
 */

const NEXT_VERSION = '16.4.6';
const PACKED = ['client-js', 'react', 'server-js', 'webhook-verifier'];
const packages = join(repositoryRoot, 'packages');
const examples = join(packages, 'react', 'examples');
/** Set `CALLPLANE_SCREENSHOTS` to the folder that gets pictures of the pages. */
const pictures = process.env['CALLPLANE_SCREENSHOTS'];

/** A layout of its own. The options of the call are in the fragment, whose key no server gets. */
const PRIVATE = `'use client';
  import { Call, CallBody, CallHeader, ControlBar, DevicePicker, LeaveButton, PanelButton, SourceButton } from '@callplane/react';
  import { useEffect, useState } from 'react';
  export function PrivateCall() {
    const [entry, setEntry] = useState();
    useEffect(() => setEntry(JSON.parse(decodeURIComponent(location.hash.slice(1)))), []);
    if (entry === undefined) return null;
    return (
      <Call {...entry} audio video>
        <CallHeader />
        <CallBody />
        <ControlBar>
          <SourceButton source="microphone" />
          <SourceButton source="camera" />
          <SourceButton source="screen" />
          <DevicePicker kind="audioinput" />
          <DevicePicker kind="videoinput" />
          <PanelButton panel="chat" />
          <LeaveButton />
        </ControlBar>
      </Call>
    );
  }`;
const PRIVATE_IN_NEXT = `
  import { PrivateCall } from '../../private-call';
  export default function Page() { return <PrivateCall />; }`;
const PRIVATE_IN_VITE = `
  import '@callplane/react/styles.css';
  import { createRoot } from 'react-dom/client';
  import { PrivateCall } from './private-call';
  createRoot(document.getElementById('root')).render(<PrivateCall />);`;
/** In a process of its own: the bundler is native, and does not run inside Jest's module system. */
const BUILD_VITE = `
  import { build } from 'vite';
  const [root] = process.argv.slice(1);
  const input = ['index.html', 'private.html'].map((name) => root + '/' + name);
  await build({ configFile: false, root, logLevel: 'error', build: { rolldownOptions: { input } } });`;

let stage: Stage;
let browsers: Browsers;
let roomId: string;
let origins: { vite: string; next: string };
/** Errors and warnings of React and of the pages. */
const complaints: string[] = [];

beforeAll(async () => {
  const project = temporaryDirectory('examples');
  const building = build(project);
  [stage, browsers] = await Promise.all([openStage(), openBrowser()]);
  roomId = await stage.newRoom();
  await building;
  const [vite, next] = await Promise.all([serveVite(join(project, 'vite', 'dist')), startNext(project)]);
  origins = { vite, next };
});
afterEach(() => expect(complaints.splice(0)).toEqual([]));

const run = promisify(execFile);

async function build(project: string): Promise<void> {
  const pnpm = join(repositoryRoot, '.tools', 'node_modules', '.bin', 'pnpm');
  const pack = async (name: string) =>
    (await run(pnpm, ['pack', '--json', '--pack-destination', project], { cwd: join(packages, name) })).stdout;
  const packed = (await Promise.all(PACKED.map(pack))).map(
    (said) => (JSON.parse(said) as { filename: string }).filename,
  );
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  const { version: react } = JSON.parse(readFileSync(join(packages, 'react/node_modules/react/package.json'), 'utf8'));
  const compiler = `@next/swc-${process.platform}-${process.arch}${process.platform === 'linux' ? '-gnu' : ''}`;
  const downloaded = [`next@${NEXT_VERSION}`, `${compiler}@${NEXT_VERSION}`, `react@${react}`, `react-dom@${react}`];
  const options = ['--ignore-scripts', '--no-optional', '--prefer-offline', '--config.node-linker=hoisted'];
  await run(pnpm, ['add', ...options, ...packed, ...downloaded], { cwd: project });

  cpSync(join(examples, 'next'), project, { recursive: true });
  cpSync(join(examples, 'vite'), join(project, 'vite'), { recursive: true });
  mkdirSync(join(project, 'app', 'private'));
  writeFileSync(join(project, 'app', 'private', 'page.jsx'), PRIVATE_IN_NEXT);
  for (const folder of [project, join(project, 'vite')]) {
    cpSync(join(examples, 'page.tsx'), join(folder, 'call-page.tsx'));
    writeFileSync(join(folder, 'private-call.jsx'), PRIVATE);
  }
  const page = readFileSync(join(project, 'vite', 'index.html'), 'utf8');
  writeFileSync(join(project, 'vite', 'private.html'), page.replace('main.jsx', 'private.jsx'));
  writeFileSync(join(project, 'vite', 'private.jsx'), PRIVATE_IN_VITE);
  await Promise.all([
    run(process.execPath, ['--input-type=module', '--eval', BUILD_VITE, join(project, 'vite')], {
      cwd: join(packages, 'react'),
    }),
    run(process.execPath, [nextIn(project), 'build'], { cwd: project, env: nextEnvironment() }),
  ]);
}

const nextIn = (project: string) => join(project, 'node_modules', 'next', 'dist', 'bin', 'next');
const nextEnvironment = (more: Record<string, string> = {}) => ({
  PATH: process.env['PATH'],
  NODE_ENV: 'production' as const,
  NEXT_TELEMETRY_DISABLED: '1',
  ...more,
});

async function startNext(project: string): Promise<string> {
  const port = await freePort();
  const settings = { CALLPLANE_URL: stage.api.url, CALLPLANE_API_KEY: stage.key, ROOM_ID: roomId };
  const child = spawn(process.execPath, [nextIn(project), 'start', '--port', String(port), '--hostname', '127.0.0.1'], {
    cwd: project,
    env: nextEnvironment({ ...settings, CALLPLANE_SIGNALING_URL: stage.url }),
    stdio: 'ignore',
  });
  const exited = once(child, 'exit');
  stopAtEnd(() => {
    child.kill();
    return exited;
  });
  const origin = `http://127.0.0.1:${port}`;
  await eventually(async () => (await fetch(origin)).ok, { timeoutMs: 60_000 });
  return origin;
}

const TYPES: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

/** Serves the built page and the route of the backend. */
async function serveVite(folder: string): Promise<string> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://page');
    if (pathname === '/token')
      void stage
        .token(roomId, searchParams.get('name') ?? '')
        .then(({ token }) => response.end(JSON.stringify({ token, url: stage.url })));
    else {
      const file = pathname === '/' ? '/index.html' : pathname;
      response.setHeader('content-type', TYPES[extname(file)] ?? 'text/plain');
      response.end(readFileSync(join(folder, file)));
    }
  });
  return (await listenUntilEnd(server)).origin;
}

async function open(url: string): Promise<Page> {
  const page = await browsers.newPage({ viewport: { width: 1280, height: 800 } });
  stopAtEnd(() => page.context().close());
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (said) => {
    if (['error', 'warning'].includes(said.type()) && !/favicon/.test(said.location().url))
      complaints.push(said.text());
  });
  await page.goto(url);
  return page;
}

/** Resolves once the page shows the pictures of both participants. */
const showsBoth = (page: Page) =>
  eventually(async () => {
    const videos = await page.evaluate<number>(
      `[...document.querySelectorAll('.cp-tile:not([data-dark]) video')].filter((one) => one.videoWidth > 0 && !one.paused).length`,
    );
    return videos === 2 || Promise.reject(new Error(`${videos} pictures`));
  });

async function picture(page: Page, name: string): Promise<void> {
  if (pictures === undefined) return;
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const [width, height] of [
      [390, 844],
      [1280, 800],
    ] as const) {
      await page.setViewportSize({ width, height });
      await page.screenshot({ path: join(pictures, `${name}-${width}-${colorScheme}.png`) });
    }
  }
}

test('Next renders the form for the devices on the server', async () => {
  const html = await (await fetch(origins.next)).text();
  expect(html).toContain('Join the call');
  expect(html).toContain('Your name');
});

test('the page of Vite and the page of Next meet in a call', async () => {
  const pages = await Promise.all(
    Object.entries(origins).map(async ([name, origin]) => {
      const page = await open(origin);
      await page.getByLabel('Your name').fill(name);
      await picture(page, `example-${name}-devices`);
      await page.getByRole('button', { name: 'Join', exact: true }).click();
      return page;
    }),
  );
  await Promise.all(pages.map(showsBoth));
  await Promise.all(pages.map((page, at) => picture(page, `example-${Object.keys(origins)[at]}-call`)));
});

test('both bundlers find the worker of an encrypted call', async () => {
  const privateRoom = await stage.newEncryptedRoom();
  const options = { encryption: { key: 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8' } };
  const pages = await Promise.all(
    [`${origins.vite}/private.html`, `${origins.next}/private`].map(async (url, at) => {
      const { token } = await stage.token(privateRoom, `P${at}`);
      return open(`${url}#${encodeURIComponent(JSON.stringify({ url: stage.url, token, options }))}`);
    }),
  );
  await Promise.all(pages.map(showsBoth));
  const fingerprints = await Promise.all(
    pages.map((page) => page.getByTitle('Compare with the others').getAttribute('title')),
  );
  expect(fingerprints[0]).toBe(fingerprints[1]);
  await Promise.all(pages.map((page, at) => picture(page, `example-${Object.keys(origins)[at]}-private`)));
});
