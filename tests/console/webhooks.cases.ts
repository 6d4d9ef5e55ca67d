import { execFileSync } from 'node:child_process';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import type { Page } from 'playwright-core';
import { confirm, heading, inspect, type ConsoleStage } from './console.testkit.js';
import { HOSTILE, startConsoleReceiver, type ConsoleReceiver } from './receiver.testkit.js';

/** Shared by the test file and its cases. */
export interface Context {
  stage(): ConsoleStage;
  /** A page of a new session, which closes after the test. */
  open(...args: Parameters<ConsoleStage['signIn']>): Promise<Page>;
}

const badge = (page: Page, text: string) => page.locator('.page-heading .badge', { hasText: text }).waitFor();

/** The cases of endpoints, deliveries and recoveries, on the stage of the console's test file. */
export function webhookCases({ stage, open }: Context): void {
  let receiver: ConsoleReceiver;
  beforeAll(async () => {
    receiver = await startConsoleReceiver();
  });

  /** Registers an endpoint that gets only tests, so that other cases send it nothing. */
  async function endpoint(url: string): Promise<{ id: string; path: string; secret: string }> {
    const { status, body } = await stage().call('POST', '/v1/webhooks', { url, events: ['webhook.test'] });
    expect(status).toBe(201);
    return { id: body.id, path: `/v1/webhooks/${body.id}`, secret: body.signingSecret };
  }
  async function delivery(path: string): Promise<{ path: string; page: string }> {
    const { body } = await stage().call('POST', `${path}/test`);
    return { path: `${path}/deliveries/${body.id}`, page: `${path.replace('/v1', '')}/deliveries/${body.id}` };
  }
  const statusOf = async (path: string) => String((await stage().call('GET', path)).body.status);
  const attempted = (path: string) =>
    eventually(async () => (await stage().call('GET', path)).body.lastAttempt !== null);

  describe('an endpoint', () => {
    test('is created with its secret shown once, tested, edited, rotated, disabled, enabled and removed', async () => {
      const page = await open('/webhooks');
      await page.getByRole('button', { name: 'Add an endpoint' }).click();
      const form = page.getByRole('dialog');
      await form.getByLabel('URL').fill(receiver.ok);
      await form.getByLabel('Description').fill(HOSTILE);
      await inspect(page, 'webhooks-add');
      await form.getByLabel('All events').uncheck();
      await form.getByLabel('webhook.test').check();
      await form.getByLabel('Attempts a second').fill('50');
      await form.getByRole('button', { name: 'Add the endpoint' }).click();
      const secret = page.getByRole('region', { name: 'Signing secret' });
      await secret.getByText(/^whsec_/).waitFor();
      const shown = (await secret.textContent()) ?? '';
      await confirm(page, 'I have stored it');
      await heading(page, receiver.ok);
      // The markup of the description is text.
      await page.getByText(HOSTILE).waitFor();
      expect(await page.content()).not.toContain(shown);
      expect(await page.evaluate('globalThis.isAttacked')).toBeUndefined();

      await page.getByRole('button', { name: 'Edit' }).click();
      await form.getByLabel('Order').selectOption('room');
      await form.getByLabel('Retry rejected deliveries').check();
      // Another session changes another field: the open form shows it, and saving keeps it.
      const id = page.url().split('/').pop()!;
      await stage().call('PATCH', `/v1/webhooks/${id}`, { maxConcurrent: 7 });
      await form.getByText('The endpoint has changed since you opened this form').waitFor();
      expect(await form.getByLabel('Attempts at once').inputValue()).toBe('7');
      await form.getByRole('button', { name: 'Save the changes' }).click();
      // The form has an option with the same words: the page of the endpoint has them in its facts.
      await page.getByRole('definition').filter({ hasText: 'Events of a room in their order' }).waitFor();
      expect((await stage().call('GET', `/v1/webhooks/${id}`)).body).toMatchObject({
        maxConcurrent: 7,
        maxPerSecond: 50,
        ordering: 'room',
        retryRejected: true,
      });

      await page.getByRole('button', { name: 'Rotate the secret' }).click();
      expect(await form.getByLabel('The new secret signs new runs').inputValue()).toBe('86400');
      await inspect(page, 'webhooks-rotate');
      await confirm(page, 'Rotate the secret');
      await page.getByRole('dialog', { name: 'Signing secret, version 2' }).waitFor();
      await confirm(page, 'I have stored it');
      await page.getByText('Version 1; version 2 signs from').waitFor();
      await page.getByRole('button', { name: 'Cancel the rotation' }).click();
      await confirm(page, 'Cancel the rotation');
      await page.getByRole('button', { name: 'Rotate the secret' }).click();
      await confirm(page, 'Rotate the secret');
      await page.getByRole('dialog', { name: 'Signing secret, version 3' }).waitFor();
      await confirm(page, 'I have stored it');
      await page.getByRole('button', { name: 'Activate the new secret' }).click();
      await confirm(page, 'Activate the secret');
      await page.getByText('Version 3', { exact: true }).waitFor();

      await page.getByRole('button', { name: 'Disable' }).click();
      await confirm(page, 'Disable the endpoint');
      await badge(page, 'disabled');
      await page.getByRole('button', { name: 'Enable' }).click();
      await confirm(page, 'Enable the endpoint');
      await badge(page, 'enabled');

      await page.getByRole('button', { name: 'Send a test' }).click();
      await confirm(page, 'Send the test');
      await heading(page, 'webhook.test');
      await badge(page, 'succeeded');

      await page.goBack();
      await heading(page, receiver.ok);
      await page.getByRole('button', { name: 'Remove' }).click();
      await confirm(page, 'Remove the endpoint');
      await heading(page, 'Webhooks');
      await page.getByText('The endpoint has been removed.').waitFor();
    });
  });

  describe('a delivery', () => {
    test('that failed says why, and shows the waterfall, headers and answer of each attempt with markup as text', async () => {
      const { path, secret } = await endpoint(receiver.hostile);
      const made = await delivery(path);
      const page = await open(made.page);
      await badge(page, 'failed');
      await page.locator('nav a[aria-current="page"]', { hasText: 'Deliveries' }).waitFor();
      await page.getByText('HTTP 404: the receiver has no POST route at this path.').first().waitFor();
      const figure = page.getByRole('figure', { name: /The attempt took/ });
      await figure.getByRole('listitem').filter({ hasText: 'First byte' }).waitFor();
      await page
        .getByRole('region', { name: 'Headers as sent' })
        .getByText(/v1=[0-9a-f]{8}…/)
        .waitFor();
      const answer = await page.getByRole('region', { name: 'Body of the answer' }).textContent();
      expect(answer).toBe(HOSTILE);
      expect(await page.evaluate('globalThis.isAttacked')).toBeUndefined();
      await inspect(page, 'delivery-failed');

      // The command that the page shows computes the signature that was sent.
      const command = (await page.getByRole('region', { name: 'Verify this delivery' }).textContent()) ?? '';
      const computed = execFileSync('bash', ['-c', command], { input: `${secret}\n`, encoding: 'utf8' });
      const { requestHeaders } = (await stage().call('GET', made.path)).body.lastAttempt;
      const [, beginning] = /v1=([0-9a-f]+)…/.exec(requestHeaders['x-service-signature'])!;
      expect(computed).toMatch(new RegExp(`= ${beginning}[0-9a-f]{56}\\n$`));

      await page.getByRole('button', { name: 'Replay' }).click();
      await page.getByText('It is replay 1 of 100.').waitFor();
      await inspect(page, 'delivery-replay');
      await confirm(page, 'Replay the delivery');
      await page.getByText('Replay 1, attempt 1').waitFor();
      await badge(page, 'failed');
    });

    test('that waits for a retry is sent at once, and the page follows without a reload', async () => {
      receiver.mended = false;
      const { path } = await endpoint(receiver.unavailable);
      const made = await delivery(path);
      const page = await open(made.page);
      await page.getByText('HTTP 503: a proxy in front of the receiver').first().waitFor();
      await page.getByText('Next attempt:').waitFor();
      await inspect(page, 'delivery-pending');
      receiver.mended = true;
      await page.getByRole('button', { name: 'Retry now' }).click();
      await confirm(page, 'Retry now');
      await badge(page, 'succeeded');
      receiver.mended = false;
    });
  });

  test('deliveries of all endpoints are one live list, with filters by status, event, reason and time in the address', async () => {
    const [good, bad] = [await endpoint(receiver.ok), await endpoint(receiver.hostile)];
    const failed = await delivery(bad.path);
    await eventually(async () => (await statusOf(failed.path)) === 'failed');
    const page = await open('/deliveries');
    const table = page.getByRole('table', { name: 'Deliveries' });
    const rowOf = (made: { path: string }) => table.locator(`a[href$="${made.path.split('/').pop()!}"]`);
    await rowOf(failed).waitFor();
    const later = await delivery(good.path);
    await rowOf(later).waitFor();
    await inspect(page, 'deliveries');

    await page.getByLabel('Failure reason').selectOption('rejected');
    await rowOf(later).waitFor({ state: 'detached' });
    await rowOf(failed).waitFor();
    expect(page.url()).toMatch(/reason=rejected.*status=failed|status=failed.*reason=rejected/);
    await page.getByLabel('Event').selectOption('room.created');
    await page.getByText('No delivery matches these filters.').waitFor();
    await page.getByRole('button', { name: 'Remove the filters' }).click();
    await rowOf(later).waitFor();
    await page.getByLabel('Created').selectOption('range');
    await page.getByLabel('To', { exact: true }).fill('2026-01-01T00:00');
    await page.getByText('No delivery matches these filters.').waitFor();
    await page.getByLabel('Created').selectOption('1h');
    await rowOf(failed).click();
    await badge(page, 'failed');
  });

  test('the list has the latest answer, finds deliveries by endpoint and room, and a delivery leads to its room', async () => {
    const [good, bad] = [await endpoint(receiver.ok), await endpoint(receiver.hostile)];
    await stage().call('PATCH', bad.path, { events: ['room.created'], description: 'Billing' });
    const { body: room } = await stage().call('POST', '/v1/rooms', { name: 'Accounted' });
    const other = await delivery(good.path);
    const page = await open(`/deliveries?room=${room.id}`);
    const row = page.getByRole('table', { name: 'Deliveries' }).getByRole('row', { name: /room\.created/ });
    await row.getByRole('cell', { name: '404', exact: true }).waitFor();
    await page.getByLabel('Room').fill('');
    await page.getByLabel('Endpoint').selectOption(good.id);
    await page.locator(`a[href$="${other.path.split('/').pop()!}"]`).waitFor();
    await row.waitFor({ state: 'detached' });
    await page.getByLabel('Endpoint').selectOption(bad.id);
    await row.getByRole('link').click();
    await page.getByRole('link', { name: room.id }).click();
    await heading(page, 'Accounted');

    // A narrow list shows answer and endpoint too.
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${stage().origin}/console/deliveries?room=${room.id}`);
    await page.getByRole('cell', { name: /room\.created 404 · 127\.0\.0\.1/ }).waitFor();
    await page.setViewportSize({ width: 1280, height: 800 });

    // One failure is not failing yet. The endpoint shows since when, how often, and its purpose.
    await page.goto(`${stage().origin}/console/webhooks`);
    const failing = page.getByRole('row', { name: /Billing/ });
    await failing.getByText('enabled').waitFor();
    const failures = { failingSince: new Date(Date.now() - 16 * 60_000), lastFailedAt: new Date() };
    await stage().database.prisma.webhookEndpoint.update({ where: { id: bad.id }, data: failures });
    await failing.getByText('failing').waitFor();
    await failing.getByText('100% of 1').waitFor();
    await failing.getByRole('link').click();
    await badge(page, 'failing');
    await page.getByRole('definition').filter({ hasText: '100% of 1' }).waitFor();
  });

  test('a window is recovered after a count that changes nothing, with its progress', async () => {
    receiver.mended = false;
    const { id, path } = await endpoint(receiver.unavailable);
    const made = await Promise.all([delivery(path), delivery(path), delivery(path)]);
    await Promise.all(made.map((each) => attempted(each.path)));
    const page = await open(`/webhooks/${id}?tab=recoveries`);
    await page.getByRole('button', { name: 'Recover a window' }).click();
    await inspect(page, 'recover-window');
    await page.getByRole('button', { name: 'Count the deliveries' }).click();
    await page.getByRole('button', { name: 'Send all 3' }).waitFor();
    for (const each of made) expect(await statusOf(each.path)).toBe('pending');
    await inspect(page, 'recover-consent');
    receiver.mended = true;
    await page.getByRole('button', { name: 'Send all 3' }).click();
    await page.getByText('The recovery is complete.').waitFor({ timeout: 60_000 });
    await confirm(page, 'Done');
    await Promise.all(made.map((each) => eventually(async () => (await statusOf(each.path)) === 'succeeded')));
    await page.getByText('Brought forward').waitFor();
    await page.getByText('running').waitFor({ state: 'detached' });
    await inspect(page, 'recoveries');
    await page.getByRole('tab', { name: 'Deliveries' }).click();
    await page.getByRole('table', { name: 'Deliveries' }).getByText('succeeded').first().waitFor();
    await inspect(page, 'webhook');
    receiver.mended = false;
  });

  test('another tenant opens neither endpoint nor delivery, and a read-only session changes nothing', async () => {
    const { id, path } = await endpoint(receiver.ok);
    const made = await delivery(path);
    const foreign = await open(`/webhooks/${id}`, { key: stage().other.key });
    await foreign.getByText('WEBHOOK_NOT_FOUND').waitFor();
    await foreign.goto(`${stage().origin}/console${made.page}`);
    await foreign.getByText('WEBHOOK_NOT_FOUND').first().waitFor();
    await foreign.goto(`${stage().origin}/console/webhooks`);
    await foreign.getByText('This environment has no endpoints yet.').waitFor();
    await inspect(foreign, 'webhooks-empty');
    const reader = await open('/webhooks', { readOnly: true });
    await reader.getByRole('table', { name: 'Endpoints' }).getByRole('link').first().waitFor();
    await inspect(reader, 'webhooks');
    expect(await reader.getByRole('button', { name: 'Add an endpoint' }).count()).toBe(0);
    await reader.goto(`${stage().origin}/console/webhooks/${id}`);
    await heading(reader, receiver.ok);
    expect(await reader.getByRole('group', { name: 'Actions' }).count()).toBe(0);
  });
}
