import { expect, test } from '@jest/globals';
import pg from 'pg';
import type { Page } from 'playwright-core';
import { grow } from '../../packages/dev/src/bench/growth-rows.js';
import { openConsole } from './console.testkit.js';

const ROOMS = 100_000;
const DELIVERIES = 1_000_000;
const SLOW_MS = 20 * 60_000;
/** How often each page is opened; the printed figure is the median. */
const ROUNDS = 5;

/** Opens a page with a fresh cache, and resolves once it can be used. */
async function timeToUse(page: Page, url: string, isReady: (page: Page) => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const startedAt = performance.now();
    await page.goto(url);
    await isReady(page);
    times.push(performance.now() - startedAt);
  }
  return Math.round(times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)]!);
}

test(
  'the console with 100,000 rooms and 1,000,000 deliveries opens every page, and its lists keep few rows in the document',
  async () => {
    const stage = await openConsole();
    const { environmentId } = stage.tenant;
    const client = new pg.Client({ connectionString: stage.databaseUrl });
    await client.connect();
    await client.query(
      `INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at)
       SELECT 'room_' || lpad(n::text, 26, '0'), $1, 'Consultation ' || n, '{}', 'created', 10,
         now() - (${ROOMS} - n) * interval '1 second'
       FROM generate_series(1, ${ROOMS}) n`,
      [environmentId],
    );
    await grow(client, environmentId, 0, DELIVERIES);
    await client.end();

    const page = await stage.signIn();
    const at = (path: string) => `${stage.origin}/console${path}`;
    const row = (name: string) => async (shown: Page) => {
      await shown.getByRole('link', { name, exact: true }).first().waitFor();
    };
    const newest = `Consultation ${ROOMS}`;
    const times = {
      overview: await timeToUse(page, at('/'), (one) => one.getByText('Live rooms').waitFor()),
      rooms: await timeToUse(page, at('/rooms'), row(newest)),
      found: await timeToUse(page, at('/rooms?name=Consultation+4711'), row('Consultation 4711')),
      room: await timeToUse(page, at(`/rooms/room_${String(ROOMS).padStart(26, '0')}`), (one) =>
        one.getByRole('heading', { name: newest }).waitFor(),
      ),
      deliveries: await timeToUse(page, at('/deliveries'), (one) =>
        one.getByRole('table').getByRole('row').nth(5).waitFor(),
      ),
    };
    console.log('measured: ms until a page can be used', times);

    await page.goto(at('/rooms'));
    await row(newest)(page);
    for (let screen = 0; screen < 40; screen += 1) {
      await page.mouse.wheel(0, 4_000);
      await page.waitForTimeout(30);
    }
    await page.locator('[data-index="300"]').waitFor();
    expect(await page.locator('[data-index]').count()).toBeLessThan(60);
  },
  SLOW_MS,
);
