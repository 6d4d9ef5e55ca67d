import { afterEach, describe, expect, test } from '@jest/globals';
import { createClient, type ConsumeOptions, type ConsumerFailure } from './index.js';
import { failure, json, scriptedServer, type Answer, type ScriptedServer } from './scripted-server.testkit.js';

let server: ScriptedServer;
afterEach(() => server.close());

const page = (nextCursor: string | null, ...ids: string[]): Answer =>
  json(200, { data: ids.map((id) => ({ id })), nextCursor });

interface Run {
  /** The stored cursor. */
  cursor: string | null;
  /** Ids of the events of each batch. */
  batches: string[][];
  failures: ConsumerFailure[];
  ended: Promise<void>;
}

/** Runs a consumer that stores its cursor in memory, and stops it after `count` batches. */
async function consume(answers: Answer[], count: number, options: Partial<ConsumeOptions> = {}): Promise<Run> {
  server = await scriptedServer(...answers);
  const ending = new AbortController();
  const run: Run = { cursor: null, batches: [], failures: [], ended: Promise.resolve() };
  const api = createClient({ baseUrl: server.baseUrl, apiKey: 'rtc_sk_1' });
  run.ended = api.consumeEvents({
    loadCursor: async () => run.cursor,
    handle: async ({ events, nextCursor }) => {
      run.batches.push(events.map(({ id }) => id));
      run.cursor = nextCursor;
      if (run.batches.length === count) ending.abort();
    },
    onFailure: (one) => run.failures.push(one),
    signal: ending.signal,
    ...options,
  });
  return run;
}

describe('consumeEvents', () => {
  test('passes on batch after batch, each from the stored cursor, until its signal is aborted', async () => {
    const run = await consume([page('c1', 'evt_1', 'evt_2'), page(null), page('c2', 'evt_3')], 2, {
      roomId: 'room_1',
      type: 'room.ended',
      limit: 2,
    });
    await expect(run.ended).resolves.toBeUndefined();
    expect(run).toMatchObject({ batches: [['evt_1', 'evt_2'], ['evt_3']], cursor: 'c2', failures: [] });
    const filters = 'roomId=room_1&type=room.ended';
    expect(server.received.map(({ url }) => url)).toEqual([
      `/v1/events?${filters}&limit=2&wait=30`,
      `/v1/events?${filters}&after=c1&limit=2&wait=30`,
      `/v1/events?${filters}&after=c1&limit=2&wait=30`,
    ]);
  });

  test('begins with the oldest event, with new ones, or at a time, and stores the position of `latest` at once', async () => {
    const latest = await consume([page('now'), page('c1', 'evt_1')], 2, { from: 'latest', waitSeconds: 5 });
    await latest.ended;
    expect(latest.batches).toEqual([[], ['evt_1']]);
    expect(server.received.map(({ url }) => url)).toEqual([
      '/v1/events?after=latest&limit=100',
      '/v1/events?after=now&limit=100&wait=5',
    ]);
    await server.close();
    const since = await consume([page('c1', 'evt_1')], 1, { from: new Date('2026-11-20T10:00:00Z') });
    await since.ended;
    expect(server.received[0]?.url).toBe('/v1/events?since=2026-11-20T10%3A00%3A00.000Z&limit=100&wait=30');
  });

  test('repeats failed steps from the stored cursor, and reports each failure with its pause', async () => {
    let isDown = true;
    const run = await consume(
      [failure(503, 'UNAVAILABLE'), failure(429, 'RATE_LIMITED', { 'retry-after': '1' }), page('c1', 'evt_1')],
      1,
      {
        loadCursor: async () => {
          if (!isDown) return run.cursor;
          isDown = false;
          throw new Error('the database is down');
        },
      },
    );
    await run.ended;
    expect(run.failures).toMatchObject([
      { step: 'loadCursor', error: { message: 'the database is down' }, failures: 1 },
      { step: 'listEvents', error: { code: 'UNAVAILABLE' }, failures: 2 },
      { step: 'listEvents', error: { code: 'RATE_LIMITED' }, failures: 3 },
    ]);
    expect(run.failures[2]!.pauseMs).toBeGreaterThanOrEqual(1_000);
    expect(run.batches).toEqual([['evt_1']]);
  });

  test('ends with the last error after `failuresMax` failures in a row', async () => {
    const run = await consume([failure(503, 'UNAVAILABLE')], 1, { failuresMax: 3 });
    await expect(run.ended).rejects.toMatchObject({ code: 'UNAVAILABLE', status: 503 });
    expect([server.received.length, run.failures.length]).toEqual([3, 2]);
  });

  test.each([
    [401, 'UNAUTHENTICATED'],
    [403, 'INSUFFICIENT_SCOPE'],
    [400, 'VALIDATION_FAILED'],
  ])('ends at once when the API answers %d %s', async (status, code) => {
    const run = await consume([failure(status, code)], 1);
    await expect(run.ended).rejects.toMatchObject({ code });
    expect(server.received).toHaveLength(1);
  });

  test('ends at once when `handle` has resolved without storing the cursor', async () => {
    const run = await consume([page('c1', 'evt_1')], 2, { handle: async () => undefined });
    await expect(run.ended).rejects.toMatchObject({ code: 'CURSOR_NOT_STORED' });
    expect(server.received).toHaveLength(1);
  });

  test('cuts a waiting request when its signal is aborted, and sends none after that', async () => {
    const ending = new AbortController();
    const waiting = await consume([() => ending.abort()], 1, { signal: ending.signal });
    await waiting.ended;
    expect([server.received.length, waiting.batches]).toEqual([1, []]);
    await server.close();
    const late = await consume([page('c1', 'evt_1')], 1, { signal: ending.signal });
    await late.ended;
    expect(server.received).toHaveLength(0);
  });

  test('lets a running `handle` complete when its signal is aborted', async () => {
    const ending = new AbortController();
    let isComplete = false;
    const run = await consume([page('c1', 'evt_1')], 1, {
      signal: ending.signal,
      handle: async () => {
        ending.abort();
        await new Promise((resolve) => setImmediate(resolve));
        isComplete = true;
      },
    });
    await run.ended;
    expect([isComplete, server.received.length]).toEqual([true, 1]);
  });

  test.each([
    { limit: 0 },
    { limit: 101 },
    { waitSeconds: 31 },
    { waitSeconds: 0 },
    { failuresMax: 1.5 },
    { from: new Date(Number.NaN) },
    { from: 'newest' as 'latest' },
    { handle: undefined as never },
  ])('refuses the option %j', async (options) => {
    const run = consume([page(null)], 1, options).then(({ ended }) => ended);
    await expect(run).rejects.toThrow(TypeError);
    expect(server.received).toHaveLength(0);
  });
});
