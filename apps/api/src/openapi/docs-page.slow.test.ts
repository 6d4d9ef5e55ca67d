import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from '@jest/globals';
import { BROWSER_PROGRAM, repositoryRoot, stopAtEnd } from '@callplane/testing';
import { chromium, type Browser, type Page } from 'playwright-core';
import { startTestApi, type TestApi } from '../api.testkit.js';

const ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
const QUIET = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];

let api: TestApi;
let browser: Browser;
beforeAll(async () => {
  [api, browser] = await Promise.all([
    startTestApi(),
    chromium.launch({ executablePath: BROWSER_PROGRAM, args: [...ARGUMENTS, ...QUIET] }),
  ]);
  stopAtEnd(() => browser.close());
});

/** Errors of the page, breaches of its policy, and requests to other hosts. */
function problemsOf(page: Page): string[] {
  const problems: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(`${api.url}/`) && !request.url().startsWith('data:')) problems.push(request.url());
  });
  return problems;
}

test.each([1280, 390])(
  'the reference works at a width of %d pixels, obeys its policy, and loads nothing from other hosts',
  async (width) => {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: 'light' });
    const problems = problemsOf(page);
    await page.goto(`${api.url}/docs/reference/`);
    await page.getByRole('heading', { name: 'First request' }).waitFor();
    await page.goto(`${api.url}/docs/reference/#tag/rooms/POST/v1/rooms`);
    await page.getByRole('heading', { name: 'Create a room' }).waitFor();
    await page.getByText('scope rooms:create').first().waitFor();
    await page.getByText('curl -s "$BASE/rooms"').first().waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    expect(problems).toEqual([]);
    await page.close();
  },
);

test.each([
  [1280, 'light'],
  [390, 'dark'],
] as const)('the site at a width of %d pixels in %s draws its diagrams and finds pages', async (width, colorScheme) => {
  await promisify(execFile)(join(repositoryRoot, 'node_modules', '.bin', 'turbo'), ['run', 'site'], {
    cwd: repositoryRoot,
  });
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  const problems = problemsOf(page);
  await page.goto(`${api.url}/docs/architecture`);
  await page.locator('.diagram svg').nth(1).waitFor();
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
  await page
    .getByRole('button', { name: /search/i })
    .first()
    .click();
  await page.locator('input[type=search]').fill('replay');
  await page.getByRole('option').or(page.locator('.results a')).first().click();
  await page
    .getByRole('heading', { name: /replay/i })
    .first()
    .waitFor();
  expect(problems).toEqual([]);
  await page.close();
});
