import { formatApiKey } from '@callplane/core';
import { describe, expect, test } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { createLogger } from './logger.js';

function capture(format: 'json' | 'pretty', level: 'info' | 'debug' = 'info') {
  const stream = new PassThrough();
  const logger = createLogger({ LOG_LEVEL: level, LOG_FORMAT: format }, 'api', stream);
  // The logger writes lines at the end of the event-loop tick.
  const text = async () => {
    await new Promise(setImmediate);
    return String(stream.read() ?? '');
  };
  return { logger, text };
}

describe('the logger', () => {
  test('writes one JSON object per line with time, level, app and fields', async () => {
    const { logger, text } = capture('json');
    logger.child({ requestId: 'req_1' }).info('request', { status: 200, route: '/v1/rooms' });
    logger.debug('not shown');
    const lines = (await text()).trimEnd().split('\n');
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      level: 'info',
      app: 'api',
      message: 'request',
      requestId: 'req_1',
      status: 200,
      route: '/v1/rooms',
    });
  });

  test.each(['json', 'pretty'] as const)(
    'redacts keys, tokens, credentials and passwords in a %s line',
    async (format) => {
      const { logger, text } = capture(format);
      const key = formatApiKey('secret', new Uint8Array(32).fill(7));
      const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJwYXJ0XzEifQ.c2lnbmF0dXJl';
      logger.error(`key ${key} refused`, {
        authorization: 'Basic dXNlcjpodW50ZXIy',
        header: `Bearer ${jwt}`,
        url: `https://user:hunter2@example.org/?k=${key}`,
        databaseUrl: 'postgresql://callplane:hunter2@db:5432/x',
        nested: {
          credential: 'hunter2',
          list: [{ token: 'hunter2' }],
          signingSecret: 'whsec_hunter2hunter2',
          text: 'whsec_aHVudGVyMg==',
        },
        error: new Error(`cannot reach redis://:hunter2@cache:6379`, { cause: new Error(`with ${jwt}`) }),
        metadata: { diary: 'hunter2' },
      });
      const line = await text();
      for (const secret of ['hunter2', 'dXNlcjpodW50ZXIy', 'aHVudGVyMg', jwt, key.slice(7), 'c2lnbmF0dXJl']) {
        expect(line).not.toContain(secret);
      }
      expect(line).toContain('cannot reach redis://:[redacted]@cache:6379');
    },
  );

  test('writes an error with its stack and its cause', async () => {
    const { logger, text } = capture('json');
    logger.error('request failed', { error: new TypeError('outer', { cause: new Error('inner') }) });
    const { error } = JSON.parse(await text());
    expect(error).toMatchObject({ name: 'TypeError', message: 'outer', cause: { name: 'Error', message: 'inner' } });
    expect(error.stack).toContain('logger.test.ts');
  });
});
