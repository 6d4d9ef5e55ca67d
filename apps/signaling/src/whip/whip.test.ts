import { connect } from 'node:net';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId, PERMISSIONS, type Permission } from '@callplane/core';
import { eventually, rawExchange } from '@callplane/testing';
import { startTestSignaling, type TestInstance, type TestSignaling } from '../signaling.testkit.js';
import { codeOf, FRAGMENT, post, request, SDP } from './whip.testkit.js';

let kit: TestSignaling;
let gateway: TestInstance;
let url: string;
beforeAll(async () => {
  kit = await startTestSignaling();
  gateway = await kit.start();
  url = gateway.url;
});

const section = (kind: 'audio' | 'video', mid: number, direction = 'sendonly') =>
  [
    `m=${kind} 9 UDP/TLS/RTP/SAVPF ${kind === 'audio' ? 111 : 96}`,
    'c=IN IP4 0.0.0.0',
    'a=ice-ufrag:abcd',
    'a=ice-pwd:abcdefghijklmnopqrstuv',
    'a=fingerprint:sha-256 00',
    'a=setup:actpass',
    `a=mid:${mid}`,
    `a=${direction}`,
    'a=rtcp-mux',
    kind === 'audio' ? 'a=rtpmap:111 opus/48000/2' : 'a=rtpmap:96 VP8/90000',
  ].join('\r\n');
const offer = (...sections: string[]) =>
  ['v=0', 'o=- 1 1 IN IP4 0.0.0.0', 's=-', 't=0 0', ...sections, ''].join('\r\n');
const OFFER = offer(section('audio', 0), section('video', 1));
const SESSION = `/v1/whip/sess_${'0'.repeat(26)}`;

async function invited(more: { permissions?: Permission[]; room?: object; claims?: object } = {}) {
  const { room = {}, ...options } = more;
  const roomId = await kit.newRoom(room);
  return { roomId, ...(await kit.invite(roomId, options)) };
}

describe('the endpoint', () => {
  test('answers OPTIONS and preflights, and tells pages of other origins nothing', async () => {
    const plain = await request(url, 'OPTIONS', '/v1/whip');
    expect([plain.status, plain.text, plain.headers.get('accept-post')]).toEqual([200, '', SDP]);
    expect(plain.headers.get('link')).toBeNull();
    const preflight = await request(url, 'OPTIONS', SESSION, { origin: 'https://app.example.com' });
    expect(preflight.status).toBe(200);
    expect(Object.fromEntries(preflight.headers)).toMatchObject({
      'access-control-allow-origin': 'https://app.example.com',
      'access-control-allow-methods': 'OPTIONS, POST, PATCH, DELETE',
      'access-control-allow-headers': 'Authorization, Content-Type, ETag, If-Match',
      'access-control-expose-headers': expect.stringContaining('Location, ETag, Link'),
      'accept-patch': FRAGMENT,
      vary: 'Origin',
    });
    const foreign = await request(url, 'OPTIONS', '/v1/whip', { origin: 'https://evil.example.com' });
    expect(foreign.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('gives ICE servers for a token before the POST, and nobody joins', async () => {
    const { token, roomId } = await invited();
    const answer = await request(url, 'OPTIONS', '/v1/whip', { token });
    expect(answer.status).toBe(200);
    expect(await kit.events(roomId)).toEqual([]);
    expect((await request(url, 'OPTIONS', '/v1/whip', { token: 'x' })).status).toBe(401);
  });

  test.each([
    ['GET', '/v1/whip', 'OPTIONS, POST'],
    ['PUT', '/v1/whip', 'OPTIONS, POST'],
    ['DELETE', '/v1/whip', 'OPTIONS, POST'],
    ['PATCH', '/v1/whip', 'OPTIONS, POST'],
    ['POST', SESSION, 'OPTIONS, PATCH, DELETE'],
    ['GET', SESSION, 'OPTIONS, PATCH, DELETE'],
  ])('refuses %s %s with 405', async (method, path, allow) => {
    const answer = await request(url, method, path);
    expect([answer.status, codeOf(answer), answer.headers.get('allow')]).toEqual([405, 'METHOD_NOT_ALLOWED', allow]);
  });

  test('refuses a POST without a valid token in the shape of the REST API, before it reads the body', async () => {
    const { token } = await invited({ claims: { exp: Math.floor(Date.now() / 1000) - 60 } });
    for (const bad of [undefined, 'x', `${token.slice(0, -4)}AAAA`, token]) {
      const answer = await post(url, bad, OFFER);
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
      expect(JSON.parse(answer.text)).toEqual({
        error: {
          code: 'UNAUTHENTICATED',
          message: expect.stringContaining('participant token'),
          requestId: answer.headers.get('x-request-id'),
        },
      });
    }
  });

  test.each<[string, string, string, number, string]>([
    ['another type', 'text/plain', OFFER, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['no type', '', OFFER, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['a fragment', FRAGMENT, OFFER, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['no description', SDP, '', 400, 'VALIDATION_FAILED'],
    ['rubbish', SDP, 'v=0', 400, 'VALIDATION_FAILED'],
    ['a large body', SDP, OFFER + 'a=x:y\r\n'.repeat(100_000), 413, 'PAYLOAD_TOO_LARGE'],
    ['an offer that sends nothing', SDP, offer(section('audio', 0, 'recvonly')), 400, 'VALIDATION_FAILED'],
    ['data', SDP, offer('m=application 9 UDP/DTLS/SCTP webrtc-datachannel', 'a=mid:0'), 400, 'VALIDATION_FAILED'],
    ['three cameras', SDP, offer(...[0, 1, 2].map((mid) => section('video', mid))), 400, 'VALIDATION_FAILED'],
    ['two sections of a mid', SDP, offer(section('audio', 0), section('video', 0)), 400, 'VALIDATION_FAILED'],
    ['other characters', SDP, OFFER.replace('s=-', 's=ä'), 400, 'VALIDATION_FAILED'],
  ])('refuses %s, and nobody joins', async (_, type, body, status, code) => {
    const { token, roomId } = await invited();
    const answer = await post(url, token, body, { 'content-type': type });
    expect([answer.status, codeOf(answer)]).toEqual([status, code]);
    expect(answer.text.length).toBeLessThan(1000);
    expect(await kit.events(roomId)).toEqual([]);
  });

  test('takes what the participant may publish, by source', async () => {
    const without = (...withdrawn: Permission[]) => PERMISSIONS.filter((one) => !withdrawn.includes(one));
    const [audio, video] = [section('audio', 0), section('video', 1)];
    for (const [permissions, body, status] of [
      [without('audio:publish', 'screen:publish'), OFFER, 403],
      [without('video:publish', 'screen:publish'), OFFER, 403],
      [without('screen:publish'), offer(audio, video, section('video', 2)), 403],
      // No media server is there, so 503 says that the offer has passed.
      [without('video:publish'), OFFER, 503],
      [without('video:publish', 'screen:publish'), offer(audio), 503],
      [PERMISSIONS, offer(audio, video, section('video', 2)), 503],
    ] as [Permission[], string, number][]) {
      const { token, roomId } = await invited({ permissions: [...permissions] });
      const answer = await post(url, token, body);
      expect([answer.status, codeOf(answer)]).toEqual([status, status === 403 ? 'PERMISSION_DENIED' : 'UNAVAILABLE']);
      if (status === 503) expect(answer.headers.get('retry-after')).toBe('1');
      expect(await kit.events(roomId)).toEqual([]);
    }
  });

  test('refuses an encrypted room with 409, and nobody joins', async () => {
    const { token, roomId } = await invited({ room: { encryption: 'required' } });
    const answer = await post(url, token, OFFER);
    expect([answer.status, codeOf(answer)]).toEqual([409, 'ROOM_ENCRYPTED']);
    expect(await kit.events(roomId)).toEqual([]);
  });

  test('closes each connection after its answer, and refuses a request without a Host', async () => {
    const answer = await rawExchange(url, 'POST /v1/whip HTTP/1.1\r\nContent-Length: 0\r\n\r\n');
    expect(answer).toContain('HTTP/1.1 400');
    expect(answer.toLowerCase()).toContain('connection: close');
  });
});

describe('a session path', () => {
  test.each(['/v1/whip/', '/v1/whip/x', '/v1/whip/..%2f', `${SESSION}/x`, SESSION, `${SESSION}0`])(
    'that nobody has, %s, is 404',
    async (path) => {
      const { token } = await invited();
      for (const method of ['PATCH', 'DELETE']) {
        const body = method === 'PATCH' ? 'a=end-of-candidates\r\n' : undefined;
        const answer = await request(url, method, path, { token, body, 'content-type': FRAGMENT, 'if-match': '*' });
        expect([answer.status, codeOf(answer)]).toEqual([404, 'SESSION_NOT_FOUND']);
      }
    },
  );

  test.each<[string, string, string, number]>([
    ['an offer', SDP, OFFER, 415],
    ['nothing', FRAGMENT, '', 400],
    ['text', FRAGMENT, 'hello\r\n', 400],
    ['a broken candidate', FRAGMENT, 'a=candidate:1 1 udp\r\n', 400],
    ['many candidates', FRAGMENT, 'a=candidate:1 1 udp 1 10.0.0.1 9 typ host\r\n'.repeat(65), 400],
    ['half of the credentials', FRAGMENT, 'a=ice-ufrag:abcd\r\n', 400],
    ['a line break in the credentials', FRAGMENT, 'a=ice-ufrag:ab\rcd\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\n', 400],
    ['a large body', FRAGMENT, 'a=x:y\r\n'.repeat(5000), 413],
  ])('refuses a PATCH with %s', async (_, type, body, status) => {
    const { token } = await invited();
    const answer = await request(url, 'PATCH', SESSION, { token, body, 'content-type': type, 'if-match': '*' });
    expect(answer.status).toBe(status);
    expect(answer.text.length).toBeLessThan(1000);
  });

  test('bounds the requests of a participant', async () => {
    const { token } = await invited();
    const answers = await Promise.all(Array.from({ length: 100 }, () => request(url, 'DELETE', SESSION, { token })));
    const limited = answers.filter(({ status }) => status === 429);
    expect(limited.length).toBeGreaterThan(20);
    expect(answers.filter(({ status }) => status === 404).length).toBeGreaterThanOrEqual(60);
    expect(Number(limited[0]?.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  });

  test('leaves other environments their share while one sends bodies slowly', async () => {
    const { token } = await invited();
    const other = await invited({ claims: { environmentId: newId('environment') } });
    const head = `POST /v1/whip HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n`;
    const sockets = Array.from({ length: 64 }, () =>
      connect(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined),
    );
    for (const socket of sockets) socket.write(`${head}Content-Type: ${SDP}\r\nContent-Length: 9\r\n\r\n`);
    await eventually(async () => {
      const refused = await post(url, token, 'v=0');
      return refused.status === 429 && Number(refused.headers.get('retry-after')) === 1;
    });
    expect((await post(url, other.token, 'v=0')).status).toBe(400);
    for (const socket of sockets) socket.destroy();
    await eventually(async () => (await post(url, token, 'v=0')).status === 400);
  });
});
