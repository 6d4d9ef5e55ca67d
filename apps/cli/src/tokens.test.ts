import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { formatApiKey } from '@callplane/core';
import { systemClock } from '@callplane/runtime';
import { stopAtEnd } from '@callplane/testing';
import { beforeAll, expect, test } from '@jest/globals';
import { run } from './program.js';

const ISSUED = { token: 'head.body.sign', participantId: 'part_1', tokenId: 'tok_1', expiresAt: 'later' };
const requests: string[] = [];
let url: string;
beforeAll(async () => {
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      requests.push(`${request.method} ${request.url} ${body}`);
      const isKnown = request.url === '/v1/rooms/room_1/tokens';
      const error = { code: 'ROOM_NOT_FOUND', message: 'Room not found.', requestId: 'req_1' };
      response.writeHead(isKnown ? 201 : 404, { 'x-request-id': 'req_1' });
      response.end(JSON.stringify(isKnown ? ISSUED : { error }));
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stopAtEnd(() => new Promise((resolve) => server.close(resolve)));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

async function rtc(args: string[], more: Record<string, string> = {}) {
  let written = '';
  const write = (part: string) => void (written += part);
  const key = formatApiKey('secret', Buffer.alloc(32, 1));
  const environment = { CALLPLANE_API_KEY: key, CALLPLANE_URL: `${url}/v1`, ...more };
  const failure = await run({ environment, clock: systemClock, write }, ['tokens', 'create', ...args]);
  return { failure, written };
}

test('rtc tokens create issues a token for an encoder, and prints it', async () => {
  expect(await rtc(['room_1'])).toEqual({ failure: null, written: 'head.body.sign\n' });
  expect(requests.at(-1)).toBe(
    'POST /v1/rooms/room_1/tokens {"participantName":"Encoder","permissions":["room:join","audio:publish","video:publish"],"ttlSeconds":3600}',
  );
  await rtc(['room_1', '--name', 'Stage', '--permissions', 'screen:publish', '--ttl', '10m', '--region', 'eu-west']);
  expect(requests.at(-1)).toContain(
    '"Stage","permissions":["room:join","screen:publish"],"ttlSeconds":600,"region":"eu-west"',
  );
  expect((await rtc(['room_1', '--region', 'EU'])).failure?.line).toContain('such as eu-west');
  expect((await rtc(['room_2'])).failure?.line).toContain('ROOM_NOT_FOUND');
});

test('rtc tokens create --whip prints a line for ffmpeg with the URL of the gateway', async () => {
  const { written } = await rtc(['room_1', '--whip']);
  expect(written).toMatch(
    /^ffmpeg -re .* -f whip -authorization 'head\.body\.sign' 'http:\/\/127\.0\.0\.1:\d+\/v1\/whip'\n$/,
  );
  expect(written).toContain(`'${url}/v1/whip'`);
  const gateway = { CALLPLANE_SIGNALING_URL: 'wss://signaling.example.com/v1/signaling' };
  expect((await rtc(['room_1', '--whip'], gateway)).written).toContain(`'https://signaling.example.com/v1/whip'`);
  const own = await rtc(['room_1', '--json', '--whip', 'https://edge.example.com/v1/whip'], gateway);
  expect(JSON.parse(own.written)).toMatchObject({ ...ISSUED, whipUrl: 'https://edge.example.com/v1/whip' });
});
