import { eventually } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import pg from 'pg';
import type { Locator, Page } from 'playwright-core';
import { openConsole } from './console.testkit.js';
import { fillEnvironment } from './scale-rows.testkit.js';

const SLOW_MS = 30 * 60_000;
/** How often each page is opened. */
const ROUNDS = 7;

interface Figures {
  /** Until the page shows its content and answers input, in milliseconds. */
  median: number;
  worst: number;
  /** The slowest answer of the API in the worst round. */
  slowest: string;
}

/** Prints how long each page takes, which docs/benchmarks.md has; the lists must hold few rows in the document. */
test(
  'the console with 100,000 rooms and 1,000,000 deliveries opens every page, and its lists keep few rows in the document',
  async () => {
    const stage = await openConsole();
    const client = new pg.Client({ connectionString: stage.databaseUrl });
    await client.connect();
    const rows = await fillEnvironment(client, stage.tenant.environmentId);
    await client.end();
    const page = await stage.signIn();
    const at = (path: string) => `${stage.origin}/console${path}`;
    const table = (name: string) => page.getByRole('table', { name }).locator('[data-index="0"]');
    const text = (what: string) => page.getByText(what).first();
    const [deliveries, rooms] = [table('Deliveries'), table('Rooms')];
    const local = (time: Date) =>
      new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
    const delivery = `/webhooks/${rows.endpointId}/deliveries/${rows.failedId}`;
    const pages: Record<string, [path: string, content: Locator]> = {
      overview: ['/', text('Live rooms')],
      rooms: ['/rooms', rooms],
      'rooms, by name': ['/rooms?name=Consultation+47', rooms],
      'rooms, all by name': ['/rooms?name=C', rooms],
      'rooms, by name: none': ['/rooms?name=Nothing', text('No room matches')],
      'rooms, by status': ['/rooms?status=active', rooms],
      'rooms, by name and status': ['/rooms?status=created&name=Consultation+4', rooms],
      room: [`/rooms/${rows.roomId}`, table('Participants')],
      'room, tokens': [`/rooms/${rows.roomId}?tab=tokens`, table('Tokens')],
      'room, timeline': [`/rooms/${rows.roomId}?tab=timeline`, text('This room has no events yet.')],
      webhooks: ['/webhooks', table('Endpoints')],
      endpoint: [`/webhooks/${rows.endpointId}`, deliveries],
      'endpoint, recoveries': [`/webhooks/${rows.endpointId}?tab=recoveries`, text('has had no recovery')],
      deliveries: ['/deliveries', deliveries],
      'deliveries, failed': ['/deliveries?status=failed', deliveries],
      'deliveries, pending': ['/deliveries?status=pending', deliveries],
      'deliveries, by type': ['/deliveries?type=participant.left', deliveries],
      'deliveries, by reason': ['/deliveries?status=failed&reason=rejected', deliveries],
      'deliveries, by a reason of one': ['/deliveries?status=failed&reason=unsafe_destination', deliveries],
      'deliveries, by a reason of none': ['/deliveries?status=failed&reason=run_expired', text('No delivery matches')],
      'deliveries, last hour': ['/deliveries?period=1h', deliveries],
      'deliveries, last 7 days': ['/deliveries?period=7d', deliveries],
      'deliveries, up to 14 days ago': [`/deliveries?period=range&to=${local(rows.middle)}`, deliveries],
      'deliveries, all filters': [
        `/deliveries?status=failed&reason=rejected&period=range&to=${local(rows.middle)}`,
        deliveries,
      ],
      delivery: [delivery, text('HTTP 404')],
      developers: ['/developers', text('Scopes')],
      call: ['/call', text('Your name')],
    };
    const figures: Record<string, Figures> = {};
    for (const [name, [path, content]] of Object.entries(pages)) figures[name] = await measure(page, at(path), content);
    console.table(figures);

    for (const [path, content] of [
      ['/rooms', rooms],
      ['/deliveries', deliveries],
    ] as const) {
      await page.goto(at(path));
      await content.waitFor();
      const startedAt = performance.now();
      for (let reached = 0; reached < 5_000;) {
        await page.mouse.move(600, 500);
        await page.mouse.wheel(0, 6_000);
        await page.waitForTimeout(20);
        reached = await lastRow(page);
      }
      console.log(`measured: ${path}, 5,000 rows: ${Math.round(performance.now() - startedAt)} ms`);
      expect(await page.locator('[data-index]').count()).toBeLessThan(60);
      if (path === '/rooms') await staysChanged(page, () => stage.newRoom('New'));
    }
  },
  SLOW_MS,
);

/** The number of the last row that is in the document. */
async function lastRow(page: Page): Promise<number> {
  return Number((await page.locator('[data-index]').last().getAttribute('data-index')) ?? 0);
}

/** A list that was read far down says that it has changed, also after further pages, until it is read again. */
async function staysChanged(page: Page, change: () => Promise<unknown>): Promise<void> {
  const news = page.getByRole('button', { name: 'The list may have changed' });
  await change();
  await news.waitFor({ state: 'attached' });
  await eventually(async () => {
    await page.mouse.wheel(0, 6_000);
    return (await lastRow(page)) > 5_400;
  });
  expect(await news.count()).toBe(1);
  await news.click();
  await page.getByRole('link', { name: 'New', exact: true }).waitFor();
  await news.waitFor({ state: 'detached' });
}

/** Opens a page again and again with a document of its own. */
async function measure(page: Page, url: string, content: Locator): Promise<Figures> {
  const rounds: { ms: number; slowest: string }[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const startedAt = performance.now();
    await page.goto(url, { waitUntil: 'commit' });
    // Not `waitFor`, which looks after 270 ms and then only every 500 ms.
    while (!(await content.isVisible())) await page.evaluate('new Promise(requestAnimationFrame)');
    // Two frames: the page has painted, and its thread is free.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
    const ms = Math.round(performance.now() - startedAt);
    rounds.push({ ms, slowest: await slowestRequest(page) });
  }
  rounds.sort((a, b) => a.ms - b.ms);
  const [middle, last] = [rounds[Math.floor(ROUNDS / 2)]!, rounds.at(-1)!];
  return { median: middle.ms, worst: last.ms, slowest: last.slowest };
}

async function slowestRequest(page: Page): Promise<string> {
  return page.evaluate(() => {
    const requests = performance
      .getEntriesByType('resource')
      .filter(({ name }) => name.includes('/v1/') && !name.includes('/v1/stream'))
      .sort((a, b) => b.duration - a.duration);
    const [slowest] = requests;
    return slowest === undefined ? '' : `${Math.round(slowest.duration)} ms ${new URL(slowest.name).pathname}`;
  });
}
