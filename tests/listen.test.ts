import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { Database } from '@callplane/db';
import {
  appMain,
  createTestDatabase,
  createTestTenant,
  eventually,
  spawnApp,
  startTestRedis,
  stopAtEnd,
  type TestApp,
} from '@callplane/testing';
import { verifyWebhook, type WebhookHeaders } from '@callplane/webhook-verifier';
import { beforeAll, expect, test } from '@jest/globals';

/** `rtc listen` as a developer uses it: a process that has nothing but the URL of the service and an API key. */

interface Step {
  step: string;
  [field: string]: unknown;
}

let api: TestApp;
let key: string;
let env: Record<string, string>;
beforeAll(async () => {
  const [target, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  const database = new Database({ url: target.url, poolMax: 1 });
  key = (await createTestTenant(database)).key;
  await database.close();
  env = { DATABASE_URL: target.url, REDIS_URL: redis.url };
  api = await spawnApp({ name: 'api', env });
});

async function createRoom(name: string): Promise<string> {
  const response = await fetch(`${api.url}/v1/rooms`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  });
  expect(response.status).toBe(201);
  return ((await response.json()) as { id: string }).id;
}

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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stopAtEnd(() => new Promise((resolve) => server.close(resolve)));
  return { received, state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}

/** Runs `rtc listen --json` with an empty environment but for the API key. */
function startListening(...options: string[]) {
  const args = [appMain('cli'), 'listen', '--json', '--url', api.url, ...options];
  const child = spawn(process.execPath, args, { env: { CALLPLANE_API_KEY: key }, stdio: ['ignore', 'pipe', 'pipe'] });
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
  const before = await createRoom('before');
  const receiver = await startReceiver();
  const listening = startListening('--forward-to', receiver.url, '--events', 'room.created,room.ended');
  const { secret } = (await listening.until('ready')) as unknown as { secret: string };

  const first = await createRoom('first');
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
  api = await spawnApp({ name: 'api', env: { ...env, PORT: new URL(api.url).port } });
  receiver.state.status = 500;
  const second = await createRoom('second');
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
  const room = await createRoom('earlier');
  const receiver = await startReceiver();
  const listening = startListening('--forward-to', receiver.url, '--since', '10m', '--events', 'room.created');
  await eventually(() => receiver.received.some(({ roomId }) => roomId === room));
  listening.child.kill('SIGTERM');
  expect(await listening.exited).toBe(0);

  const nobody = startListening('--forward-to', 'http://127.0.0.1:9/', '--since', '10m');
  expect(await nobody.until('forwarded')).toMatchObject({ statusCode: null, errorCode: 'ECONNREFUSED' });
});
