import { describe, expect, test } from '@jest/globals';
import { testToken } from './scripted-gateway.testkit.js';
import { assertToken, settingsOf } from './options.js';

const token = (claims: unknown) => `header.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.signature`;
const codeOf = (given: string) => {
  try {
    assertToken(given);
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  }
};

test('the URL of a host leads to the usual path, and one with a path stays', () => {
  const urlOf = (url: string) => settingsOf({ url, token: testToken }).url;
  expect(urlOf('wss://calls.example.com')).toBe('wss://calls.example.com/v1/signaling');
  expect(urlOf('ws://127.0.0.1:8082/')).toBe('ws://127.0.0.1:8082/v1/signaling');
  expect(urlOf('wss://calls.example.com/v1/signaling')).toBe('wss://calls.example.com/v1/signaling');
  expect(urlOf('wss://example.com/calls/v1/signaling')).toBe('wss://example.com/calls/v1/signaling');
  for (const wrong of ['https://example.com', 'calls.example.com', '', 'wss://'])
    expect(() => urlOf(wrong)).toThrow('`url`');
});

test('a URL at which nothing accepts a WebSocket is given up after 4 s, unless the page wants to wait for longer', () => {
  const settings = (connectTimeoutMs?: number) =>
    settingsOf({ url: 'wss://a.example', token: testToken, ...(connectTimeoutMs && { connectTimeoutMs }) });
  expect(settings()).toMatchObject({ connectTimeoutMs: 15_000, reachTimeoutMs: 4_000 });
  expect(settings(30_000)).toMatchObject({ connectTimeoutMs: 30_000, reachTimeoutMs: 30_000 });
});

describe('a token, before it is sent', () => {
  test.each(['', 'jwt', 'a.b', 'a.b.c', token([]).slice(1, 9), `${testToken}.more`, 'x'.repeat(9000), 'rtc_sk_secret'])(
    'is refused without the form of a token: %j',
    (wrong) => {
      expect(codeOf(wrong)).toBe('invalid_token');
    },
  );

  test('is left to the gateway, however old it is: the clock of this machine may be wrong', () => {
    expect(codeOf(token({ exp: 1000 }))).toBeUndefined();
  });
});
