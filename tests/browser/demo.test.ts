import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { WebSocket } from 'ws';
import { connect, type Call } from '@callplane/client-js';
import { Database } from '@callplane/db';
import { eventually, repositoryRoot, stopAtEnd } from '@callplane/testing';
import { startDemo } from '../../packages/dev/src/demo/demo.js';
import { openBrowser, type Browsers } from './pages.testkit.js';
import { openStage, type Stage } from './stage.testkit.js';

let browsers: Browsers;
const opened: Page[] = [];
const calls: Call[] = [];

beforeAll(async () => {
  browsers = await openBrowser();
});
afterEach(async () => {
  await Promise.all(
    opened.splice(0).map(async (page) => {
      // The participant leaves, and is not in the room of the next test. The end of a context sends no event to its pages.
      page.removeAllListeners('pageerror');
      if (!page.isClosed()) await page.goto('about:blank');
      await page.context().close();
    }),
  );
  await Promise.all(calls.splice(0).map((call) => call.leave()));
});

async function openDemo(stage: Stage, gateway = stage.signaling): Promise<string> {
  const demo = await startDemo({
    port: 0,
    host: '127.0.0.1',
    dir: join(repositoryRoot, 'apps', 'demo', 'dist'),
    apiUrl: stage.api.url,
    apiKey: stage.key,
    gatewayUrl: gateway.url,
    hosts: [],
    onError: console.error,
  });
  stopAtEnd(() => demo.close());
  return `${demo.url}/demo/`;
}

/** Opens no device before the page calls `openDevices`. */
const holdDevices = `const opening = new Promise((resolve) => (globalThis.openDevices = resolve));
  const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = (constraints) => opening.then(() => open(constraints));`;

/** As if the user had refused every device. Chromium's fake devices need no permission. */
const refuseDevices = `navigator.mediaDevices.getUserMedia = () =>
  Promise.reject(new DOMException('Permission denied', 'NotAllowedError'));`;

async function visit(url: string, more: Parameters<Browsers['newPage']>[0] = {}, script = ''): Promise<Page> {
  const page = await browsers.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: 'light', ...more });
  opened.push(page);
  page.on('pageerror', (error) => console.error('On the page:', error));
  if (script !== '') await page.addInitScript(script);
  await page.goto(url);
  return page;
}

const bar = (page: Page) => page.getByRole('group', { name: 'Call' });

async function enter(page: Page, name: string): Promise<void> {
  await page.getByLabel('Your name').fill(name);
  await page.getByRole('button', { name: 'Join', exact: true }).click();
  await bar(page).waitFor();
}

/** Participants of the demo's room without a browser: they only take part. */
async function enterWithoutBrowser(url: string, room: string, names: string[]): Promise<Call[]> {
  const join = async (name: string) => {
    const response = await fetch(new URL('api/join', url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ room, name }),
    });
    const { token } = (await response.json()) as { token: string };
    const signaling = new URL('/v1/signaling', url.replace('http', 'ws')).href;
    const call = await connect({ url: signaling, token, platform: { WebSocket } });
    calls.push(call);
    return call;
  };
  return Promise.all(names.map(join));
}

const tiles = (page: Page) => page.locator('.cp-tile').count();
/** Counts the tiles that show video. */
const playing = (page: Page) => page.locator('.cp-tile:not([data-dark]) video').count();

/** The settings show it for calls of the API. */
async function idOfRoom(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'Settings' }).click();
  const id = await page.getByRole('dialog').getByRole('code').textContent();
  await page.keyboard.press('Escape');
  return id ?? '';
}

/** The page overflows neither at the width of a laptop nor of a phone. */
async function fits(page: Page): Promise<void> {
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
  }
}

describe('the demo page', () => {
  let stage: Stage;
  let url: string;
  beforeAll(async () => {
    stage = await openStage();
    url = await openDemo(stage);
  });

  test('two tabs join the same room, see each other, chat, and see each other leave', async () => {
    const [ada, bob] = await Promise.all([visit(url), visit(url)]);
    await enter(ada, 'Ada');
    await enter(bob, 'Bob');
    await eventually(async () => (await playing(ada)) === 2 && (await playing(bob)) === 2);
    await ada.getByText('Bob joined').waitFor({ state: 'attached' });
    await ada.getByText('Connected', { exact: true }).waitFor();
    expect(await ada.getByRole('heading', { level: 1 }).textContent()).toBe('demo');
    const roomId = await idOfRoom(ada);
    expect(roomId).toMatch(/^room_/);
    expect(await idOfRoom(bob)).toBe(roomId);

    await ada.getByRole('button', { name: 'People' }).click();
    await ada.getByRole('list', { name: 'People' }).getByText('Bob').waitFor();
    await ada.getByText('2 here').waitFor();

    await bob.getByRole('button', { name: 'Chat' }).click();
    await bob.getByLabel('Message to everybody').fill('Hello from Bob');
    await bob.keyboard.press('Enter');
    await ada.getByRole('button', { name: /Chat.*1 unread/ }).click();
    await ada.getByRole('log').getByText('Hello from Bob').waitFor();
    await ada.getByLabel('Message to everybody').fill('Good to see you. Shall we begin?');
    await ada.keyboard.press('Enter');
    await bob.getByRole('button', { name: 'Stop camera' }).click();
    await eventually(async () => (await playing(ada)) === 1);
    await bob.getByRole('button', { name: 'Start camera' }).click();
    await bob.getByRole('button', { name: 'Mute' }).click();
    await eventually(async () => (await playing(ada)) === 2);
    await ada.getByText(/↑ \d+ kbit.*↓ \d+ kbit.*packets lost.*round trip/).waitFor();

    const data = { text: 'Five minutes left' };
    await stage.call('POST', `/v1/rooms/${roomId}/messages`, { data });
    await ada.locator('.cp-message', { hasText: /The server.*Five minutes left/ }).waitFor();

    await bob.close();
    await eventually(async () => (await tiles(ada)) === 1);
    await ada.getByText('Bob left').waitFor({ state: 'attached' });
  });

  test('every action works with the keyboard alone, and an element always has the focus', async () => {
    const page = await visit(url);
    const focused = () => page.evaluate<string>('document.activeElement.name || document.activeElement.textContent');
    const press = (...keys: string[]) =>
      keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
    expect(await focused()).toBe('name');
    await page.getByLabel('Microphone').locator('option').nth(1).waitFor({ state: 'attached' });
    await page.keyboard.type('Kim');
    await press('Enter');
    await bar(page).waitFor();
    await page.getByRole('button', { name: 'Mute', exact: true }).waitFor();
    expect(await focused()).toBe('Mute');
    await press('m');
    await page.getByRole('button', { name: 'Unmute' }).waitFor();
    await press('m');
    await page.getByRole('button', { name: 'Mute', exact: true }).waitFor();
    await press('v');
    await page.getByRole('button', { name: 'Start camera' }).waitFor();

    await press('c');
    expect(await page.evaluate('document.activeElement.placeholder')).toBe('Message to everybody');
    // A letter typed into a text field is no shortcut.
    await page.keyboard.type('small v');
    expect(await page.getByLabel('Message to everybody').inputValue()).toBe('small v');
    await press('Enter');
    await page.getByRole('log').getByText('small v').waitFor();
    await press('Escape');
    // Where it was before the shortcut.
    expect(await focused()).toBe('Mute');

    expect(await page.locator('.cp-initial').isVisible()).toBe(true);
    await page.getByRole('button', { name: 'Settings' }).press('Enter');
    await page.getByRole('dialog').getByLabel('Use the keys').press(' ');
    await press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await eventually(async () => (await focused()) === 'Settings');
    await press('c');
    expect(await page.getByRole('log').count()).toBe(0);
    await page.getByRole('button', { name: 'Settings' }).press('Enter');
    await page.getByRole('dialog').getByLabel('Use the keys').press(' ');
    await press('Escape');
    await press('l');
    await page.getByRole('heading', { name: 'Join a call' }).waitFor();
    expect(await focused()).toBe('Join');
  });

  test('the end of the room is explained, and so is a server that is away', async () => {
    const gateway = await stage.spawnSignaling();
    const page = await visit(`${await openDemo(stage, gateway)}?room=ends`);
    await enter(page, 'Kim');
    await stage.call('DELETE', `/v1/rooms/${await idOfRoom(page)}`);
    await page.getByRole('alert').getByText('The room has ended').waitFor();
    await page.getByRole('button', { name: 'Join' }).click();
    await bar(page).waitFor();
    await gateway.stop();
    await page.getByText('Reconnecting…', { exact: true }).waitFor();
    const another = await visit(url);
    await another.route('**/api/join', (route) => route.abort());
    await another.getByLabel('Your name').fill('Kim');
    await another.getByRole('button', { name: 'Join' }).click();
    await another.getByRole('alert').getByText('The server does not answer').waitFor();
  });

  test('a call that is recorded says so, also to screen readers and to who joins later', async () => {
    const database = new Database({ url: stage.databaseUrl, poolMax: 1 });
    stopAtEnd(() => database.close());
    const page = await visit(`${url}?room=recorded`);
    await enter(page, 'Kim');
    const badge = (on: Page) => on.locator('header').getByText('Recording', { exact: true });
    expect(await badge(page).isVisible()).toBe(false);
    const id = await idOfRoom(page);
    const say = (recordingSince: Date | null) =>
      database.prisma.room.update({ where: { id }, data: { recordingSince, version: { increment: 1 } } });
    await say(new Date());
    await badge(page).waitFor();
    const said = (text: string) => page.getByText(text).waitFor({ state: 'attached' });
    await said('The call is recorded from now on');
    const late = await visit(`${url}?room=recorded`);
    await enter(late, 'Lee');
    await badge(late).waitFor();
    await late.getByText(/You joined.*The call is recorded/).waitFor({ state: 'attached' });
    await fits(late);
    await say(null);
    await said('The recording has ended');
    expect(await badge(page).isVisible()).toBe(false);
  });

  test('who joins while the devices are being opened has them in the call', async () => {
    const page = await visit(`${url}?room=hasty`, {}, holdDevices);
    await page.getByLabel('Your name').fill('Kim');
    await page.getByRole('button', { name: 'Join', exact: true }).click();
    await page.getByRole('button', { name: 'Joining…' }).waitFor();
    await page.evaluate('openDevices()');
    await bar(page).waitFor();
    await page.getByRole('button', { name: 'Mute', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Stop camera' }).waitFor();
  });

  test('a refused camera is explained, and the user joins without it', async () => {
    const page = await visit(`${url}?room=refused`, {}, refuseDevices);
    await page.getByText(/Allow the microphone.*Allow the camera.*You can join without it/).waitFor();
    await enter(page, 'Kim');
    expect(await page.getByRole('button', { name: 'Start camera' }).isVisible()).toBe(true);
    await page.getByRole('button', { name: 'Start camera' }).click();
    await page.locator('.cp-banner', { hasText: 'Allow the camera' }).waitFor();
  });

  test('a shared screen takes the stage, and no view overflows at the width of a phone', async () => {
    const room = `${url}?room=Design%20review`;
    const [ada, bob] = await Promise.all([visit(room), visit(room)]);
    await fits(ada);
    await enter(ada, 'Ada Lovelace');
    await enter(bob, 'Bob');
    await enterWithoutBrowser(url, 'Design review', ['Grace Hopper', 'Édouard']);
    await eventually(async () => (await playing(ada)) === 2 && (await tiles(ada)) === 4);
    await fits(ada);
    await bob.getByRole('button', { name: 'Share screen' }).click();
    await ada.locator('.cp-tile[data-source=screen][data-staged]:not([data-dark])').waitFor();
    expect(await tiles(ada)).toBe(5);
    await fits(ada);
    await ada.getByRole('button', { name: 'People' }).click();
    await fits(ada);
    await ada.getByRole('button', { name: 'Chat' }).click();
    await ada.getByLabel('Message to everybody').fill('Good to see you. Shall we begin?');
    await ada.keyboard.press('Enter');
    await ada.getByRole('log').getByText('Shall we begin').waitFor();
    await fits(ada);
    await ada.keyboard.press('Escape');
    await ada.getByRole('button', { name: 'Settings' }).click();
    await fits(ada);
    await ada.keyboard.press('Escape');
    await bob.getByRole('button', { name: 'Stop sharing' }).click();
    await eventually(async () => (await tiles(ada)) === 4);
    expect(await ada.locator('.cp-tile[data-staged]').count()).toBe(0);
  });
});
