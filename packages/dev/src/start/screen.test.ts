import { expect, test } from '@jest/globals';
import { screen } from './screen.js';

const facts = {
  devFile: '/data/dev.json',
  dataDir: '/data',
  origin: 'http://127.0.0.1:8080',
  seconds: 1,
  isVerbose: false,
  signalingUrl: 'ws://127.0.0.1:8082/v1/signaling',
  demoUrl: 'http://127.0.0.1:8082/demo/',
  metricsUrls: { api: 'http://127.0.0.1:20001/metrics', signaling: 'http://127.0.0.1:20002/metrics' },
  turn: undefined,
  hasMedia: true,
  keys: { secretKey: 'rtc_sk_secret', publishableKey: 'rtc_pk_public' },
};

test('a terminal shows the secret key, ready to paste', () => {
  const text = screen({ ...facts, isTerminal: true });
  expect(text).toContain('Secret key       rtc_sk_secret\n');
  expect(text).toContain('KEY=rtc_sk_secret\n');
  expect(text).toMatch(
    /Metrics {10}http:\/\/127.0.0.1:20001\/metrics {3}\(api\)\n {19}http:\S+20002\/metrics {3}\(signaling\)\n/,
  );
  expect(text).toContain('Console          http://127.0.0.1:8080/console/ ');
});

test('a file or a pipe gets the path of dev.json in place of the secret key', () => {
  const text = screen({ ...facts, isTerminal: false });
  expect(text).not.toContain('rtc_sk_secret');
  expect(text).toContain('Secret key       in /data/dev.json\n');
  expect(text).toContain('rtc_pk_public');
});
