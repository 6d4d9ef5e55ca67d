import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import type { Page } from 'playwright-core';
import { confirm, heading, inspect, openConsole, type ConsoleStage } from './console.testkit.js';
import { HOSTILE } from './receiver.testkit.js';
import { webhookCases } from './webhooks.cases.js';

let stage: ConsoleStage;
const opened: Page[] = [];

beforeAll(async () => {
  stage = await openConsole();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((page) => page.context().close()));
  expect(stage.problems.splice(0)).toEqual([]);
});

async function open(...args: Parameters<ConsoleStage['signIn']>): Promise<Page> {
  const page = await stage.signIn(...args);
  opened.push(page);
  return page;
}
const isLive = (page: Page) => page.locator('.sidebar .live[data-state="live"]').waitFor();

describe('signing in', () => {
  test('a wrong key is refused with the code and the request id of the API', async () => {
    const page = await stage.newPage();
    opened.push(page);
    await page.goto(`${stage.origin}/console/`);
    await heading(page, 'Sign in to the console');
    await inspect(page, 'sign-in');
    await page.getByLabel('Secret API key').fill(`rtc_sk_${'x'.repeat(43)}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    const alert = page.getByRole('alert').filter({ hasText: 'UNAUTHENTICATED' });
    await alert.waitFor();
    expect(await alert.textContent()).toMatch(/HTTP 401req_/);
  });

  test('a key opens a session that no script of the page can read, and signing out ends it', async () => {
    const page = await open();
    await heading(page, 'Overview');
    const kept = await page.evaluate(() => ({
      cookie: document.cookie,
      stored: localStorage.length + sessionStorage.length,
      url: location.href,
    }));
    expect(kept).toEqual({ cookie: '', stored: 0, url: `${stage.origin}/console/` });
    await page.getByRole('button', { name: 'Sign out' }).click();
    await heading(page, 'Sign in to the console');
    await page.reload();
    await heading(page, 'Sign in to the console');
  });

  test('a link of rtc works once, and its code stays in no address', async () => {
    const link = await stage.loginLink();
    const page = await stage.newPage();
    opened.push(page);
    await page.goto(`${stage.origin}/console/`);
    await heading(page, 'Sign in to the console');
    // The browser loads no page for it: only the fragment changes.
    await page.goto(link);
    await heading(page, 'Overview');
    expect(page.url()).toBe(`${stage.origin}/console/`);
    const second = await stage.newPage();
    opened.push(second);
    await second.goto(link);
    await second.getByText('The link has expired, or was used before.').waitFor();
    expect(second.url()).toBe(`${stage.origin}/console/`);
  });

  test('a sign-in in another tab with a key of another environment leads this tab to the same environment', async () => {
    const page = await open('/rooms');
    await heading(page, 'Rooms');
    const tab = await page.context().newPage();
    await tab.goto(`${stage.origin}/console/`);
    await tab.getByRole('button', { name: 'Sign out' }).click();
    await heading(page, 'Sign in to the console');
    await tab.getByLabel('Secret API key').fill(stage.other.key);
    await tab.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('.tenant', { hasText: stage.other.environmentId }).waitFor();
    await heading(page, 'Rooms');
  });

  test('the end of the session elsewhere leads to the sign-in page, and a new session to the same page', async () => {
    const page = await open('/rooms');
    await heading(page, 'Rooms');
    await page.evaluate(() =>
      fetch('/v1/console/sessions/current', { method: 'DELETE', headers: { 'x-callplane-csrf': '1' } }),
    );
    await page.getByText('The session has ended').waitFor();
    await page.getByLabel('Secret API key').fill(stage.tenant.key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await heading(page, 'Rooms');
  });
});

test('a session without input ends after an hour, although its page still reads', async () => {
  const page = await stage.newPage();
  opened.push(page);
  await page.clock.install();
  await page.goto(`${stage.origin}/console/rooms`);
  await page.getByLabel('Secret API key').fill(stage.tenant.key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await heading(page, 'Rooms');
  await isLive(page);
  await page.clock.fastForward(3_700_000);
  await page.getByText('because nobody used the console').waitFor();
  const status = await page.evaluate(async () => (await fetch('/v1/')).status);
  expect(status).toBe(401);
});

describe('the list of rooms', () => {
  test('shows new rooms without a reload, and finds rooms by name, status and identifier', async () => {
    const page = await open('/rooms');
    await heading(page, 'Rooms');
    await isLive(page);
    await stage.newRoom('Consultation 4711');
    await page.getByRole('link', { name: 'Consultation 4711' }).waitFor();
    await stage.newRoom('Surgery');
    await page.getByRole('link', { name: 'Surgery' }).waitFor();
    const where = { id: await stage.newRoom('Recorded lesson') };
    await stage.database.prisma.room.update({ where, data: { recordingSince: new Date() } });
    await stage.newRoom('Lecture');
    await page.getByRole('row', { name: 'Recorded lesson' }).getByText('recording', { exact: true }).waitFor();
    expect(await page.getByText('recording', { exact: true }).count()).toBe(1);
    await inspect(page, 'rooms');
    await page.getByLabel('Name begins with').fill('Consult');
    await page.getByRole('link', { name: 'Surgery' }).waitFor({ state: 'detached' });
    expect(page.url()).toContain('name=Consult');
    await page.getByLabel('Status').selectOption('ended');
    await page.getByText('No room matches these filters.').waitFor();
    await page.getByRole('button', { name: 'Remove the filters' }).click();
    await page.getByRole('link', { name: 'Surgery' }).waitFor();
    const namesake = await stage.newRoom('Surgery');
    await page.getByRole('link', { name: `Surgery ${namesake}` }).waitFor();
    await page.getByLabel('Name begins with').fill(namesake);
    await page.getByRole('link', { name: 'Consultation' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: `Surgery ${namesake}` }).waitFor();
    expect(await page.getByRole('link', { name: /^Surgery/ }).count()).toBe(1);
  });

  test('a room is created with a dialog, and its page opens', async () => {
    const page = await open('/rooms');
    await page.getByRole('button', { name: 'Create a room' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('Made here');
    await dialog.getByLabel('Participants at most').fill('7');
    await dialog.getByRole('button', { name: 'Create the room' }).click();
    await heading(page, 'Made here');
    await page.getByText('7 participants').waitFor();
  });
});

test('names with markup are shown as text on every page', async () => {
  const roomId = await stage.newRoom(HOSTILE);
  await stage.call('POST', `/v1/rooms/${roomId}/tokens`, { participantName: HOSTILE });
  const page = await open('/rooms');
  await page.getByRole('link', { name: HOSTILE }).click();
  await heading(page, HOSTILE);
  await page.getByRole('tab', { name: 'Tokens' }).click();
  await page.getByRole('cell', { name: HOSTILE }).waitFor();
  await page.getByRole('button', { name: 'End the room' }).click();
  await page.getByRole('dialog').getByText(HOSTILE).waitFor();
  await page.goto(`${stage.origin}/console/call?room=${roomId}`);
  await page.getByRole('option', { name: HOSTILE }).waitFor({ state: 'attached' });
  expect(await page.evaluate('globalThis.isAttacked')).toBeUndefined();
});

describe('a call', () => {
  test('is steered from the page of its room: mute, message, permissions, removal, end', async () => {
    const roomId = await stage.newRoom('Ward round');
    const caller = await open(`/call?room=${roomId}`);
    await inspect(caller, 'call-join');
    await caller.getByLabel('Your name').fill('Ada');
    await caller.getByRole('button', { name: 'Join the room' }).click();
    await caller.getByRole('button', { name: 'Mute', exact: true }).waitFor();
    await inspect(caller, 'call');

    const page = await open(`/rooms/${roomId}`);
    await isLive(page);
    await page.getByRole('img', { name: /camera/ }).waitFor();
    await inspect(page, 'room-participants');
    await page.getByRole('button', { name: 'Ada', exact: true }).click();
    const sheet = page.getByRole('dialog', { name: 'Ada', exact: true });
    await inspect(page, 'room-participant');
    const microphone = sheet.getByRole('listitem').filter({ hasText: 'Microphone' });
    await microphone.getByRole('button', { name: 'Mute' }).click();
    await page.getByText('Everyone stops receiving it at once').waitFor();
    await inspect(page, 'room-mute');
    await confirm(page, 'Mute');
    await caller.getByRole('button', { name: 'Unmute' }).waitFor();

    await sheet.getByRole('button', { name: 'Send a message' }).click();
    await confirm(page, 'Send');
    // The notice is in the dialog, because everything outside of it is inert.
    await sheet.getByRole('status').getByText('The message was sent to 1 participant.').waitFor();

    await sheet.getByRole('button', { name: 'Change permissions' }).click();
    await page.getByLabel('Publish a camera').uncheck();
    await page.getByText('are unpublished at once').waitFor();
    await confirm(page, 'Change the permissions');
    await sheet.getByRole('listitem').filter({ hasText: 'Camera' }).waitFor({ state: 'detached' });
    await caller.locator('button[data-source=camera]:disabled').waitFor();

    await page.keyboard.press('Escape');
    await sheet.waitFor({ state: 'detached' });
    const row = page.getByRole('row', { name: /Ada/ });
    await caller.getByRole('button', { name: 'Unmute' }).click();
    await row.getByRole('button', { name: 'Mute Ada' }).click();
    await confirm(page, 'Mute');
    await caller.getByRole('button', { name: 'Unmute' }).waitFor();
    await page.getByRole('tab', { name: 'Media' }).click();
    const servers = page.getByRole('region', { name: 'Media servers of the room' });
    await servers.getByRole('cell', { name: '1', exact: true }).waitFor();
    await inspect(page, 'room-media');
    await page.getByRole('tab', { name: 'Participants' }).click();
    await row.getByRole('button', { name: 'Remove Ada' }).click();
    await page.getByText('The identity is blocked').waitFor();
    await confirm(page, 'Remove the participant');
    await caller.getByText('The call is over').waitFor();
    await page.getByText('Nobody is in the room.').waitFor();

    await page.getByRole('tab', { name: 'Tokens' }).click();
    await page.getByRole('cell', { name: 'revoked' }).waitFor();
    await inspect(page, 'room-tokens');
    await page.getByRole('tab', { name: 'Timeline' }).click();
    await page.getByRole('button', { name: 'Ada left' }).waitFor();
    await inspect(page, 'room-timeline');
    await page.getByRole('button', { name: 'End the room' }).click();
    await inspect(page, 'room-end');
    await confirm(page, 'End the room');
    await page.locator('.page-heading .badge', { hasText: 'ended' }).waitFor();
    await page.getByRole('button', { name: 'The room ended' }).waitFor();
    await page.getByRole('tab', { name: 'Media' }).click();
    await page.getByText('This room is on no media server.').waitFor();
    await page.getByRole('tab', { name: 'Operation' }).click();
    await page.getByText('completed').first().waitFor();
    await inspect(page, 'room-operation');
  });
});

test('people who wait in the lobby are let in, or refused, from the page of their room', async () => {
  const { body: room } = await stage.call('POST', '/v1/rooms', { name: 'Office hours', waitingRoom: true });
  const page = await open(`/rooms/${room.id}`);
  await page.getByText('Nobody is in the room.').waitFor();
  const join = async (name: string) => {
    const caller = await open(`/call?room=${room.id}`);
    await caller.getByLabel('Your name').fill(name);
    await caller.getByRole('button', { name: 'Join the room' }).click();
    await caller.getByRole('status').filter({ hasText: 'You will be let in soon.' }).waitFor();
    return caller;
  };
  const [ada, bob] = [await join('Ada'), await join('Bob')];
  await inspect(ada, 'call-lobby');
  await page.getByRole('heading', { name: '2 people wait' }).waitFor();
  await inspect(page, 'room-lobby');
  await page.getByRole('button', { name: 'Let in Ada' }).click();
  await ada.getByRole('button', { name: 'Leave' }).waitFor();
  await page.getByRole('cell', { name: 'in room' }).waitFor();
  await page.getByRole('button', { name: 'Refuse Bob' }).click();
  await confirm(page, 'Refuse');
  await bob.getByText('The call is over').waitFor();
  await page.getByRole('heading', { name: 'One person waits' }).waitFor({ state: 'detached' });
});

describe('the page for developers', () => {
  test('shows the context, the signature contract, and commands for the screen', async () => {
    const page = await open('/developers');
    await page.getByText(stage.tenant.environmentId).first().waitFor();
    await inspect(page, 'developers');
    await page.getByRole('tab', { name: 'Requests' }).click();
    const { body } = await stage.call('GET', '/v1/rooms?limit=1');
    await page.getByRole('region', { name: 'curl: End the room' }).getByText(String(body.data[0].id)).waitFor();
    await inspect(page, 'developers-requests');
    await page.getByRole('tab', { name: 'Signatures' }).click();
    await page.getByText('x-service-signature', { exact: true }).first().waitFor();
    await inspect(page, 'developers-signatures');
    await page.getByRole('navigation').getByRole('link', { name: 'Rooms' }).click();
    await heading(page, 'Rooms');
    await page.getByRole('button', { name: 'Requests' }).click();
    const command = await page.getByRole('region', { name: 'curl: GET /v1/rooms' }).textContent();
    expect(command).toContain(`curl -sS '${stage.origin}/v1/rooms`);
    expect(command).not.toContain(stage.tenant.key);
  });

  test('the test of the line tries each way from the browser, and measures a loop', async () => {
    const page = await open('/developers?tab=line');
    await page.getByRole('button', { name: 'Test the line' }).click();
    await page.getByText('Calls work from this browser.').waitFor({ timeout: 60_000 });
    const result = (way: string) => page.getByRole('row', { name: way }).textContent();
    expect(await result('Signaling')).toContain('works');
    expect(await result('TURN over TLS')).toContain('not tested');
    expect(await result('Loop')).toMatch(/kbit\/s\..*\d ms$/);
    await inspect(page, 'developers-line');
  });
});

test('another tenant sees none of the rooms, and cannot open one by its address', async () => {
  const roomId = await stage.newRoom('Private');
  const page = await open(`/rooms/${roomId}`, { key: stage.other.key });
  await page.getByText('ROOM_NOT_FOUND').waitFor();
  await page.getByRole('navigation').getByRole('link', { name: 'Rooms' }).click();
  await page.getByText('This environment has no rooms yet.').waitFor();
  await inspect(page, 'rooms-empty');
});

test('a read-only session offers no change, and the API refuses one', async () => {
  const roomId = await stage.newRoom('Look, do not touch');
  const page = await open(`/rooms/${roomId}`, { readOnly: true });
  await heading(page, 'Look, do not touch');
  await page.getByText('read only').waitFor();
  await page.getByText('Nobody is in the room.').waitFor();
  expect(await page.locator('.page-actions').getByRole('button').count()).toBe(0);
  const status = await page.evaluate(
    async (path) => (await fetch(path, { method: 'DELETE', headers: { 'x-callplane-csrf': '1' } })).status,
    `/v1/rooms/${roomId}`,
  );
  expect(status).toBe(403);
});

webhookCases({ stage: () => stage, open });

test('the overview counts the calls and deliveries of the last hour', async () => {
  const page = await open();
  await page.getByRole('link', { name: /Failed deliveries [1-9]/ }).waitFor();
  await page.getByRole('figure', { name: 'Joins in 5 minutes' }).waitFor();
  await inspect(page, 'overview');
});

test('a narrow window has the navigation behind a button, and a link or Escape closes it', async () => {
  const page = await open();
  await page.setViewportSize({ width: 390, height: 844 });
  const link = page.getByRole('navigation').getByRole('link', { name: 'Developers' });
  await link.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Navigation' }).click();
  await link.waitFor();
  await page.keyboard.press('Escape');
  await link.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Navigation' }).click();
  await inspect(page, 'navigation');
  await link.click();
  await heading(page, 'Developers');
  await link.waitFor({ state: 'hidden' });
});

test('a page survives a restart of the API: it says so, connects again, and shows the changes', async () => {
  const page = await open('/rooms');
  await isLive(page);
  await stage.restartApi(async () => {
    await page.locator('.sidebar .live[data-state="reconnecting"]').waitFor();
  });
  await stage.newRoom('After the restart');
  await page.getByRole('link', { name: 'After the restart' }).waitFor({ timeout: 60_000 });
  await isLive(page);
  await eventually(() =>
    page
      .getByRole('alert')
      .filter({ hasText: 'NO_ANSWER' })
      .count()
      .then((count) => count === 0),
  );
});
