import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { EndedAttempt, TypedSql } from '@callplane/db';
import { createLogger } from '@callplane/runtime';
import { Settling } from './settling.js';

/** Longer than a result waits for those of running attempts. */
const LONG_MS = 60;
const tick = () => new Promise((resolve) => setImmediate(resolve));

describe('settling', () => {
  let statements: string[][];
  let settling: Settling;

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    statements = [];
    const $queryRaw = (_query: unknown, ...values: unknown[]) => {
      const rows = JSON.parse(String(values[0])) as { id: string; token: string }[];
      statements.push(rows.map(({ id }) => id));
      return Promise.resolve(rows.map(({ id, token }) => ({ id, leaseToken: token })));
    };
    const logger = createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'test', new PassThrough());
    settling = new Settling({ $queryRaw } as unknown as TypedSql, logger);
  });
  afterEach(() => void jest.useRealTimers());

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

  test('writes the result of a lone attempt as soon as it has ended', async () => {
    settling.attemptBegins();
    const settled = settling.settle(ended('a'));
    settling.attemptEnds();
    expect(await settled).toMatchObject({ id: 'a' });
    expect(statements).toEqual([['a']]);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('writes the results of attempts that run together with one statement', async () => {
    for (let n = 0; n < 3; n += 1) settling.attemptBegins();
    const results = [];
    for (const id of ['a', 'b', 'c']) {
      await tick();
      expect(statements).toEqual([]);
      results.push(settling.settle(ended(id)));
      settling.attemptEnds();
    }
    expect(await Promise.all(results)).toMatchObject([{ id: 'a' }, { id: 'b' }, { id: 'c' }]);
    expect(statements).toEqual([['a', 'b', 'c']]);
  });

  test('does not wait for an attempt that takes long', async () => {
    settling.attemptBegins();
    settling.attemptBegins();
    const settled = settling.settle(ended('a'));
    settling.attemptEnds();
    await tick();
    expect(statements).toEqual([]);
    jest.advanceTimersByTime(LONG_MS);
    expect(await settled).toMatchObject({ id: 'a' });
    expect(statements).toEqual([['a']]);
  });

  test('writes a result for which other deliveries may wait at once', async () => {
    settling.attemptBegins();
    settling.attemptBegins();
    const waiting = settling.settle(ended('a'));
    expect(await settling.settle(ended('b'), true)).toMatchObject({ id: 'b' });
    expect(statements).toEqual([['b']]);
    jest.advanceTimersByTime(LONG_MS);
    expect(await waiting).toMatchObject({ id: 'a' });
  });
});
