import { PassThrough } from 'node:stream';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { EndedAttempt, TypedSql } from '@callplane/db';
import { createLogger } from '@callplane/runtime';
import { Settling } from './settling.js';

const tick = () => new Promise((resolve) => setImmediate(resolve));

describe('settling', () => {
  let statements: string[][];
  let settling: Settling;

  beforeEach(() => {
    statements = [];
    const $queryRaw = (_query: unknown, ...values: unknown[]) => {
      const rows = JSON.parse(String(values[0])) as { id: string; token: string }[];
      statements.push(rows.map(({ id }) => id));
      return tick().then(() => rows.map(({ id, token }) => ({ id, leaseToken: token })));
    };
    const logger = createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'test', new PassThrough());
    settling = new Settling({ $queryRaw } as unknown as TypedSql, logger);
  });

  const ended = (id: string): EndedAttempt => ({
    claim: { id, leaseToken: id, url: '', secretVersion: 1, startedAt: new Date(0), replayCount: 0, runAttempt: 1 },
    attempt: {
      durationMs: 1,
      outcome: 'success',
      errorCode: null,
      statusCode: 200,
      address: null,
      timings: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
      responseBody: null,
      responseTruncated: false,
      exchange: null,
    },
    after: { status: 'succeeded' },
    proves: true,
    slotMs: 1,
  });

  test('writes the result of a lone attempt at once', async () => {
    expect(await settling.settle(ended('a'))).toMatchObject({ id: 'a' });
    expect(statements).toEqual([['a']]);
  });

  test('writes the results that arrive during a statement with the next one', async () => {
    const first = settling.settle(ended('a'));
    await tick();
    const others = ['b', 'c'].map((id) => settling.settle(ended(id)));
    expect(await Promise.all([first, ...others])).toMatchObject([{ id: 'a' }, { id: 'b' }, { id: 'c' }]);
    expect(statements).toEqual([['a'], ['b', 'c']]);
  });

  test('releases deliveries once PostgreSQL takes connections again', async () => {
    const noSlots = Object.assign(new Error('sorry, too many clients already'), { code: '53300' });
    const released: unknown[] = [];
    const $executeRaw = (_query: unknown, ids: unknown) =>
      released.push(ids) === 1 ? Promise.reject(noSlots) : Promise.resolve(2);
    const logger = createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'test', new PassThrough());
    settling = new Settling({ $executeRaw } as unknown as TypedSql, logger);
    await settling.release([ended('a').claim, ended('b').claim]);
    expect(released).toHaveLength(2);
  });
});
