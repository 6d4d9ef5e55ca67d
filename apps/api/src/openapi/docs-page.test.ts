import { beforeAll, expect, test } from '@jest/globals';
import { stopAtEnd } from '@callplane/testing';
import { chromium, type Browser } from 'playwright-core';
import { startTestApi, type TestApi } from '../api.testkit.js';

const ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
const QUIET = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];

let api: TestApi;
let browser: Browser;
beforeAll(async () => {
  [api, browser] = await Promise.all([
    startTestApi(),
    chromium.launch({ executablePath: '/usr/bin/chromium', args: [...ARGUMENTS, ...QUIET] }),
  ]);
  stopAtEnd(() => browser.close());
});

test.each([1280, 390])(
  'the documentation page works at a width of %d pixels, obeys its policy, and loads nothing from other hosts',
  async (width) => {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: 'light' });
    const problems: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(message.text());
    });
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('request', (request) => {
      if (!request.url().startsWith(`${api.url}/`) && !request.url().startsWith('data:')) problems.push(request.url());
    });
    await page.goto(`${api.url}/docs`);
    await page.locator('#operations-Rooms-createRoom button.opblock-summary-control').click();
    await page.locator('#operations-Rooms-createRoom .responses-table').waitFor();
    expect(await page.locator('.webhooks').innerText()).toContain('event');
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    expect(problems).toEqual([]);
    await page.close();
  },
);
