import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { generateSigningSecret, signDelivery } from '@callplane/core';

// The examples run as a customer would run them, on the build in dist.
describe.each(['express.mjs', 'node-http.mjs'])('the example %s', (name) => {
  const secret = generateSigningSecret(Buffer.alloc(32, 1));
  const lines: string[] = [];
  let child: ChildProcess;
  let url = '';

  beforeAll(async () => {
    child = spawn(process.execPath, [join(import.meta.dirname, '..', 'examples', name)], {
      env: { ...process.env, PORT: '0', WEBHOOK_SECRETS: JSON.stringify({ 1: secret }) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const reader = createInterface({ input: child.stdout! });
    reader.on('line', (line) => lines.push(line));
    const [first] = (await once(reader, 'line')) as [string];
    url = `http://127.0.0.1:${first.split(' ').at(-1)}/webhooks`;
  });
  afterAll(async () => {
    const exited = once(child, 'exit');
    child.kill();
    await exited;
  });

  const deliver = async (eventId: string, changes: { version?: string; body?: string; sent?: string } = {}) => {
    const { version = '1', body = `{"id":"${eventId}","type":"room.created"}`, sent = body } = changes;
    const signed = {
      secret,
      deliveryId: 'dlv_1',
      replayCount: 0,
      timestampUnixSeconds: Math.floor(Date.now() / 1000),
      body,
    };
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-service-signature': signDelivery(signed),
        'x-service-delivery-id': signed.deliveryId,
        'x-service-replay-count': '0',
        'x-service-signing-key-version': version,
      },
      body: sent,
    });
    return answer.status;
  };

  test('accepts a delivery and processes it once, however often it comes', async () => {
    expect(await deliver('evt_1')).toBe(204);
    expect(await deliver('evt_1')).toBe(204);
    expect(await deliver('evt_2', { body: '{ "id": "evt_2", "type": "room.ended", "data": "Zoë 😀" }' })).toBe(204);
    expect(lines.slice(1)).toEqual(['processing room.created evt_1', 'processing room.ended evt_2']);
  });

  test('rejects an unsigned request, and asks for a retry when it lacks the secret', async () => {
    expect(await deliver('evt_3', { sent: '{"id":"evt_3","type":"room.ended"}' })).toBe(400);
    expect(await deliver('evt_3', { version: '2' })).toBe(503);
    expect((await fetch(url, { method: 'POST' })).status).toBe(400);
    expect(lines.join()).not.toContain('evt_3');
  });
});
