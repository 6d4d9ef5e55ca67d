import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { eventually, repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { openBrowser, type Browsers } from './pages.testkit.js';
import { openStage, type Stage } from './stage.testkit.js';

const SLOW_MS = 60_000;
/** Kept for whoever wants to look: `CALLPLANE_SCREENSHOTS=/some/folder`. */
const pictures = process.env['CALLPLANE_SCREENSHOTS'] ?? temporaryDirectory('screenshots');
let browsers: Browsers;
const opened: Page[] = [];

beforeAll(async () => {
  mkdirSync(pictures, { recursive: true });
  browsers = await openBrowser();
}, SLOW_MS);
afterEach(async () => {
  await Promise.all(opened.splice(0).map((page) => page.context().close()));
});

async function openDemo(stage: Stage): Promise<string> {
  const gateway = await stage.spawnSignaling({
    NODE_ENV: 'development',
    DEMO_DIR: join(repositoryRoot, 'apps', 'demo', 'dist'),
    DEMO_API_URL: stage.api.url,
    DEMO_API_KEY: stage.key,
  });
  return `${gateway.url}/demo/`;
}

async function visit(url: string, more: Parameters<Browsers['newPage']>[0] = {}): Promise<Page> {
  const page = await browsers.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: 'light', ...more });
  opened.push(page);
  page.on('pageerror', (error) => console.error('On the page:', error));
  await page.goto(url);
  return page;
}

async function enter(page: Page, name: string): Promise<void> {
  await page.getByLabel('Your name').fill(name);
  await page.getByRole('button', { name: 'Join' }).click();
  await page.getByRole('toolbar').waitFor();
}

const tiles = (page: Page) => page.locator('#grid .tile').count();
/** Pictures that move, or at least are there. */
const playing = (page: Page) => page.locator('#grid .tile:not(.dark) video').count();

describe('the demo page', () => {
  let url: string;
  beforeAll(async () => {
    url = await openDemo(await openStage());
  }, SLOW_MS);

  test(
    'two tabs meet without further ado, see each other, chat, and see each other leave',
    async () => {
      const [ada, bob] = await Promise.all([visit(url), visit(url)]);
      await ada.screenshot({ path: join(pictures, 'lobby.png') });
      await enter(ada, 'Ada');
      await enter(bob, 'Bob');
      await eventually(async () => (await playing(ada)) === 2 && (await playing(bob)) === 2, { timeoutMs: 15_000 });
      await ada.locator('#announcements', { hasText: 'Bob joined' }).waitFor({ state: 'attached' });
      await ada.getByText('Connected', { exact: true }).waitFor();
      expect(await ada.locator('#room-id').textContent()).toMatch(/^room_/);
      expect(await bob.locator('#room-id').textContent()).toBe(await ada.locator('#room-id').textContent());

      await bob.getByRole('button', { name: 'Chat' }).click();
      await bob.getByLabel('Message to everybody').fill('Hello from Bob');
      await bob.keyboard.press('Enter');
      await ada.locator('#unread', { hasText: '1' }).waitFor();
      await ada.getByRole('button', { name: 'Chat' }).click();
      await ada.getByRole('log').getByText('Hello from Bob').waitFor();
      await ada.getByLabel('Message to everybody').fill('Good to see you. Shall we begin?');
      await ada.keyboard.press('Enter');
      await bob.getByRole('button', { name: 'Stop camera' }).click();
      await eventually(async () => (await playing(ada)) === 1);
      await bob.getByRole('button', { name: 'Start camera' }).click();
      await bob.getByRole('button', { name: 'Mute' }).click();
      await eventually(async () => (await playing(ada)) === 2);
      await ada.locator('#statistics', { hasText: /↑ \d+ kbit.*↓ \d+ kbit.*packets lost.*round trip/ }).waitFor();
      await ada.screenshot({ path: join(pictures, 'call.png') });

      await bob.close();
      await eventually(async () => (await tiles(ada)) === 1, { timeoutMs: 3_000 });
      await ada.locator('#announcements', { hasText: 'Bob left' }).waitFor({ state: 'attached' });
    },
    SLOW_MS,
  );

  test(
    'everything can be done with the keyboard alone, and the focus is always somewhere to be seen',
    async () => {
      const page = await visit(url);
      const focused = () => page.evaluate<string>('document.activeElement.id');
      const press = (...keys: string[]) =>
        keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
      expect(await focused()).toBe('name');
      await page.keyboard.type('Kim');
      const order: string[] = [];
      for (let count = 0; count < 4; count++) {
        await press('Tab');
        order.push(await focused());
      }
      expect(order).toEqual(['room', 'with-audio', 'with-video', 'join-button']);
      await press('Enter');
      await page.getByRole('toolbar').waitFor();
      expect(await focused()).toBe('toggle-audio');
      await page.getByRole('button', { name: 'Mute', exact: true }).waitFor();
      await press('m');
      await page.getByRole('button', { name: 'Unmute' }).waitFor();
      await press('m');
      await page.getByRole('button', { name: 'Mute', exact: true }).waitFor();
      await press('v');
      await page.getByRole('button', { name: 'Start camera' }).waitFor();

      await press('c');
      expect(await focused()).toBe('chat-text');
      // A letter in the text is a letter.
      await page.keyboard.type('small v');
      expect(await page.getByLabel('Message to everybody').inputValue()).toBe('small v');
      await press('Enter');
      await page.getByRole('log').getByText('small v').waitFor();
      await press('Escape');
      expect(await focused()).toBe('toggle-chat');

      const bar: string[] = [];
      await press('Shift+Tab', 'Shift+Tab', 'Shift+Tab');
      for (let count = 0; count < 6; count++) {
        bar.push(await focused());
        await press('Tab');
      }
      expect(bar).toEqual(['toggle-audio', 'toggle-video', 'toggle-screen', 'toggle-chat', 'show-help', 'leave']);

      expect(await page.locator('.tile .initial').isVisible()).toBe(true);
      await press('?');
      await page.getByRole('dialog').waitFor();
      await page.screenshot({ path: join(pictures, 'shortcuts.png') });
      await press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      await press('l');
      await page.getByRole('heading', { name: 'Join a call' }).waitFor();
      expect(await focused()).toBe('join-button');
    },
    SLOW_MS,
  );

  test(
    'it fits a small screen in the dark',
    async () => {
      const page = await visit(url, { viewport: { width: 390, height: 780 }, colorScheme: 'dark' });
      await enter(page, 'Kim');
      await eventually(async () => (await playing(page)) === 1);
      await page.screenshot({ path: join(pictures, 'small.png') });
      const overflow = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      );
      expect(overflow).toBe(0);
    },
    SLOW_MS,
  );
});

describe('without a media server', () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage({ media: false });
  }, SLOW_MS);

  test(
    'everything but media works, and says media_unavailable',
    async () => {
      const roomId = await stage.newRoom();
      const [ada, bob] = await Promise.all([browsers.newParticipant(), browsers.newParticipant()]);
      for (const [name, one] of [
        ['Ada', ada],
        ['Bob', bob],
      ] as const) {
        opened.push(one.page);
        await one.join({ url: stage.url, token: (await stage.token(roomId, name)).token });
        expect(await one.ask('mediaState')).toBe('down');
      }
      expect(await ada.ask('publish', { audio: true })).toBe('media_unavailable');
      await ada.ask('send', { text: 'at least this' });
      await eventually(async () => (await bob.events()).some(({ name }) => name === 'message'));
      const { token } = await stage.token(roomId, 'Eve');
      const eve = await browsers.newParticipant();
      opened.push(eve.page);
      expect(await eve.ask('joinCode', { url: stage.url, token, requireMedia: true })).toBe('media_unavailable');
    },
    SLOW_MS,
  );

  test(
    'the demo page says so, and chats',
    async () => {
      const page = await visit(await openDemo(stage));
      await enter(page, 'Ada');
      await page.getByText('media_unavailable').waitFor();
      await page.getByRole('button', { name: 'Chat' }).click();
      await page.getByLabel('Message to everybody').fill('anybody?');
      await page.keyboard.press('Enter');
      await page.getByRole('log').getByText('anybody?').waitFor();
    },
    SLOW_MS,
  );
});
