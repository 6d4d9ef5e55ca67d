import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { formatApiKey } from '@callplane/core';
import { systemClock } from '@callplane/runtime';
import { stopAtEnd } from '@callplane/testing';
import { beforeAll, expect, test } from '@jest/globals';
import { run } from './program.js';

const KEY = formatApiKey('secret', Buffer.alloc(32, 1));
const requests: { line: string; headers: IncomingMessage['headers']; body: string }[] = [];
let answer: { status: number; body: string };
let url: string;
beforeAll(async () => {
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      requests.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
      response.writeHead(answer.status, { 'x-request-id': 'req_1' }).end(answer.body);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stopAtEnd(() => new Promise((resolve) => server.close(resolve)));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

async function rtc(...args: string[]) {
  let written = '';
  const write = (more: string) => void (written += more);
  const environment = { CALLPLANE_API_KEY: KEY, CALLPLANE_URL: `${url}/` };
  const failure = await run({ environment, clock: systemClock, write }, ['api', ...args]);
  return { failure, written };
}

test('rtc api sends the fields as path, query and body, and prints the answer', async () => {
  answer = { status: 201, body: '{"id":"room_1"}' };
  const created = await rtc('createRoom', 'name=Ward = 4', 'maxParticipants:=10', '--json', '--idempotency-key', 'one');
  expect(created).toEqual({ failure: null, written: '{"id":"room_1"}\n' });
  expect(requests.at(-1)).toMatchObject({
    line: 'POST /v1/rooms',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'idempotency-key': 'one' },
    body: '{"name":"Ward = 4","maxParticipants":10}',
  });
  answer = { status: 200, body: '{"data":[],"nextCursor":null}' };
  expect((await rtc('listParticipants', 'roomId=room_1', 'limit:=5')).written).toContain('"nextCursor": null');
  expect(requests.at(-1)!.line).toBe('GET /v1/rooms/room_1/participants?limit=5');
  answer = { status: 204, body: '' };
  expect(await rtc('deleteWebhook', 'endpointId=whep_1', '--json')).toEqual({
    failure: null,
    written: '{"status":204}\n',
  });
});

test('rtc api names the key with which a change is repeated safely if its outcome is unknown', async () => {
  answer = { status: 504, body: '<html>' };
  const key = () => String(requests.at(-1)!.headers['idempotency-key']);
  const unclear = (await rtc('createRoom', 'name=x')).failure;
  expect(unclear?.line).toContain(`--idempotency-key ${key()}`);
  expect(key()).toMatch(/^[0-9a-f]{32}$/);
  const unreachable = (await rtc('createRoom', 'name=x', '--url', 'http://127.0.0.1:1')).failure;
  expect(unreachable?.line).toMatch(/the connection .* failed.* --idempotency-key [0-9a-f]{32}\.$/);
  expect((await rtc('readContext', '--url', 'http://127.0.0.1:1')).failure?.line).not.toContain('--idempotency-key');
});

test('rtc api lists the operations that a key may call', async () => {
  const { data } = JSON.parse((await rtc('--json')).written) as { data: { operation: string; path: string }[] };
  expect(data).toContainEqual({ operation: 'createRoom', method: 'POST', path: '/v1/rooms' });
  expect(data.map(({ operation }) => operation)).not.toContain('createConsoleSession');
});

test('rtc api prints the refusal of the API, and the fault of a command line', async () => {
  answer = {
    status: 400,
    body: '{"error":{"code":"VALIDATION_FAILED","message":"body.name is required (and 1 more, see details)","details":[{"path":"body.name","message":"is required"},{"path":"body.x","message":"is not a known field"}]}}',
  };
  expect((await rtc('createRoom', 'name=x')).failure).toEqual({
    exitCode: 1,
    line: 'VALIDATION_FAILED: createRoom: body.name is required (and 1 more, see details); body.x is not a known field (HTTP 400, request req_1)',
  });
  answer = { status: 502, body: '<html>' };
  expect((await rtc('readContext')).failure).toEqual({ exitCode: 1, line: expect.stringContaining('status 502') });
  answer = { status: 200, body: '<html>' };
  expect((await rtc('createRoom', 'name=x')).failure).toEqual({
    exitCode: 1,
    line: expect.stringContaining('status 200'),
  });
  answer = {
    status: 400,
    body: '{"error":{"code":"VALIDATION_FAILED","message":"\\u009b2J"}}',
  };
  expect((await rtc('createRoom', 'name=x')).failure).toEqual({
    exitCode: 1,
    line: 'VALIDATION_FAILED: createRoom: \\u009b2J (HTTP 400, request req_1)',
  });
  const sent = requests.length;
  for (const [args, hint] of [
    [['launchRocket'], 'launchRocket'],
    [['readRoom'], 'roomId'],
    [['readRoom', 'roomId=../keys'], 'roomId'],
    [['createRoom', 'name'], 'name=value'],
    [['createRoom', 'maxParticipants:=ten'], 'JSON'],
    [['readRoom', 'roomId=room_1', 'more=x'], 'more'],
  ] as const) {
    expect((await rtc(...args)).failure).toEqual({ exitCode: 2, line: expect.stringContaining(hint) });
  }
  expect(requests).toHaveLength(sent);
});
