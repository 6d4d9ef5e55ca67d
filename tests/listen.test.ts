import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { appMain, eventually, listenUntilEnd, stopAtEnd, type TestApp } from '@callplane/testing';
import { verifyWebhook, type WebhookHeaders } from '@callplane/webhook-verifier';
import { beforeAll, expect, test } from '@jest/globals';
import { startStack, type Stack } from './faults/faults.testkit.js';

/** `rtc listen` as a developer uses it: a process that has nothing but the URL of the service and an API key. */

interface Step {
  step: string;
  [field: string]: unknown;
}

let stack: Stack;
let api: TestApp;
beforeAll(async () => {
  stack = await startStack();
  api = await stack.spawnApi();
});

/** A receiver that answers with the status in `status`. */
async function startReceiver() {
  const received: { headers: WebhookHeaders; body: string; roomId: string }[] = [];
  const state = { status: 200 };
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      received.push({ headers: request.headers, body, roomId: JSON.parse(body).data.room?.id });
      response.writeHead(state.status).end(state.status === 200 ? '' : 'not today');
    });
  });
  return { received, state, url: `${(await listenUntilEnd(server)).origin}/hook` };
}

/** Runs `rtc listen --json` with an empty environment but for the API key. */
function startListening(...options: string[]) {
  const args = [appMain('cli'), 'listen', '--json', '--url', api.url, ...options];
  const child = spawn(process.execPath, args, {
    env: { CALLPLANE_API_KEY: stack.tenant.key },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const steps: Step[] = [];
  let errors = '';
  createInterface(child.stdout).on('line', (line) => steps.push(JSON.parse(line) as Step));
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const exited = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  stopAtEnd(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const until = (step: string) =>
    eventually(() => {
      if (child.exitCode !== null) throw new Error(`rtc listen has ended: ${errors}`);
      return steps.find((each) => each.step === step);
    });
  return { child, steps, exited, until, errors: () => errors };
}

test('rtc listen forwards new events with valid signatures, over a restart of the service, until it is interrupted', async () => {
  const before = await stack.newRoom(api);
  const receiver = await startReceiver();
  const listening = startListening('--forward-to', receiver.url, '--events', 'room.created,room.ended');
  const { secret } = (await listening.until('ready')) as unknown as { secret: string };

  const first = await stack.newRoom(api);
  await eventually(() => receiver.received.length === 1);
  const [{ headers, body, roomId }] = receiver.received as [(typeof receiver.received)[number]];
  expect(roomId).toBe(first);
  expect(verifyWebhook({ headers, rawBody: body, secrets: secret })).toMatchObject({
    ok: true,
    event: { type: 'room.created' },
    replayCount: 0,
    signingKeyVersion: 1,
  });
  expect(verifyWebhook({ headers, rawBody: body, secrets: secret.replace('whsec_', 'whsec_A') }).ok).toBe(false);

  // The request that waits does not hold up the end of the process.
  expect(await api.stop()).toEqual({ code: 0, signal: null });
  expect(await listening.until('interrupted')).toMatchObject({ reason: expect.any(String) });
  api = await stack.spawnApi({ PORT: new URL(api.url).port });
  receiver.state.status = 500;
  const second = await stack.newRoom(api);
  await listening.until('resumed');
  await eventually(() => listening.steps.filter(({ step }) => step === 'forwarded').length === 2);
  expect(receiver.received.map((each) => each.roomId)).toEqual([first, second]);
  expect(receiver.received.map((each) => each.roomId)).not.toContain(before);
  const forwarded = listening.steps.filter(({ step }) => step === 'forwarded');
  expect(forwarded).toEqual([
    expect.objectContaining({ type: 'room.created', statusCode: 200, errorCode: null }),
    expect.objectContaining({ type: 'room.created', statusCode: 500, body: 'not today' }),
  ]);

  listening.child.kill('SIGINT');
  expect([await listening.exited, listening.errors()]).toEqual([0, '']);
  expect(listening.steps.at(-1)).toEqual({
    step: 'ended',
    forwarded: 2,
    failed: 1,
    failedEvents: [forwarded[1]!['id']],
  });
});

test('rtc listen --since forwards earlier events, and reports a receiver that is not there', async () => {
  const room = await stack.newRoom(api);
  const receiver = await startReceiver();
  const listening = startListening('--forward-to', receiver.url, '--since', '10m', '--events', 'room.created');
  await eventually(() => receiver.received.some(({ roomId }) => roomId === room));
  listening.child.kill('SIGTERM');
  expect(await listening.exited).toBe(0);

  const nobody = startListening('--forward-to', 'http://127.0.0.1:9/', '--since', '10m');
  expect(await nobody.until('forwarded')).toMatchObject({ statusCode: null, errorCode: 'ECONNREFUSED' });
});
