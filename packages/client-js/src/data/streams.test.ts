import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { CallplaneError } from '../errors.js';
import type { CreditMessage, PartMessage } from '../protocol.generated.js';
import { Incoming } from './incoming.js';
import { Outgoing, type OutgoingContext } from './outgoing.js';
import type { StreamOptions } from './stream-options.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

interface Line {
  /** The time in which a message of this size arrives; undefined: it is lost. */
  delayMs: (bytes: number) => number | undefined;
}

const readerOf = (bytes: Uint8Array, chunkBytes = 50_000) => {
  let at = 0;
  return new ReadableStream<Uint8Array>({
    pull: (controller) => {
      if (at >= bytes.length) controller.close();
      else controller.enqueue(bytes.slice(at, at + chunkBytes));
      at += chunkBytes;
    },
  }).getReader();
};
const randomBytes = (length: number) => Uint8Array.from({ length }, (_, at) => (at * 7919) % 251);

/** A sender and its receivers, each behind a line of its own. Pages read at once, unless they are `idle`. */
function connect(bytes: Uint8Array, lines: Record<string, Line & { idle?: boolean }>, options: StreamOptions = {}) {
  const receivers = new Map<string, { incoming: Incoming; read: Promise<Uint8Array> }>();
  /** Like `Streams`, a receiver repeats how a stream has ended. */
  const last = new Map<string, Parameters<typeof credit>[1]>();
  const onTheWay: Record<string, { now: number; most: number }> = {};
  const parts: { to: string[]; offset: number; bytes: number }[] = [];
  const over = (id: string, bytesOnLine: number, arrive: () => void) => {
    const delayMs = lines[id]!.delayMs(bytesOnLine);
    if (delayMs !== undefined) setTimeout(arrive, delayMs);
  };
  const credit = (from: string, fields: Omit<CreditMessage, 'type' | 'from' | 'streamId'>) => {
    over(from, 0, () => outgoing.receive({ type: 'credit', from, streamId: 's', ...fields }));
    return Promise.resolve();
  };
  const open = (id: string) => {
    // Like `Streams`, it repeats its credit.
    const known = receivers.get(id)?.incoming;
    known?.receive({ type: 'part', from: 'ada', streamId: 's', offset: 0, data: '' });
    if (known !== undefined) return;
    const info = { method: 'files', from: 'ada', participant: undefined, name: '', contentType: '', attributes: {} };
    const incoming = new Incoming(
      { ...info, size: bytes.length },
      {
        now: () => performance.now(),
        credit: (fields) => credit(id, fields),
        open: (data) => Promise.resolve(new Uint8Array(Buffer.from(data, 'base64'))),
        onOver: (fields) => void last.set(id, fields),
      },
    );
    const read = lines[id]!.idle === true ? new Promise<never>(() => undefined) : incoming.stream.blob();
    const whole = read.then(async (blob) => new Uint8Array(await blob.arrayBuffer()));
    whole.catch(() => undefined);
    receivers.set(id, { incoming, read: whole });
  };
  const context: OutgoingContext = {
    now: () => performance.now(),
    random: () => 0.5,
    partsAtOnce: () => 8,
    open: (to) => {
      for (const id of to) over(id, 0, () => open(id));
      return Promise.resolve();
    },
    part: ({ to, offset, last: isLast }, data) => {
      parts.push({ to, offset, bytes: data.length });
      const message: PartMessage = { type: 'part', from: 'ada', streamId: 's', offset, data: '' };
      for (const id of to) {
        const count = (onTheWay[id] ??= { now: 0, most: 0 });
        count.now += data.length;
        count.most = Math.max(count.most, count.now);
        const text = Buffer.from(data).toString('base64');
        over(id, data.length, () => {
          count.now -= data.length;
          const end = last.get(id);
          if (end !== undefined) void credit(id, end);
          receivers.get(id)?.incoming.receive({ ...message, data: text, ...(isLast === true ? { last: true } : {}) });
        });
      }
      return Promise.resolve();
    },
    abort: (to, offset) => {
      const message: PartMessage = { type: 'part', from: 'ada', streamId: 's', offset, data: '', aborted: true };
      for (const id of to) over(id, 0, () => receivers.get(id)?.incoming.receive(message));
    },
  };
  const outgoing = new Outgoing(Object.keys(lines), readerOf(bytes), options, context);
  const run = outgoing.run();
  run.catch(() => undefined);
  return { outgoing, run, receivers, parts, onTheWay };
}

/** Lets time pass until the promise settles, at most an hour of it. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  const over = new AbortController();
  promise.catch(() => undefined).finally(() => over.abort());
  for (let n = 0; n < 7_200 && !over.signal.aborted; n++) await jest.advanceTimersByTimeAsync(500);
  if (!over.signal.aborted) throw new Error('not settled within an hour');
  return promise;
}

const fast: Line = { delayMs: () => 10 };

describe('a stream', () => {
  test('arrives whole, whatever the network loses, repeats or delays', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 60_000 }),
        fc.array(fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 1, max: 400 }) }, fc.constant(undefined)), {
          minLength: 1,
          maxLength: 40,
        }),
        async (length, fates) => {
          const bytes = randomBytes(length);
          let at = 0;
          // After these, the line is good: a line that loses everything delivers nothing.
          const delayMs = () => (at < fates.length ? fates[at++] : 10);
          const { run, receivers } = connect(bytes, { bob: { delayMs } });
          expect(await settled(run)).toEqual({ delivered: ['bob'], failed: new Map() });
          expect(await receivers.get('bob')!.read).toEqual(bytes);
        },
      ),
      { numRuns: 15 },
    );
  });

  test('keeps little on the way to a slow line, and goes at full speed over others', async () => {
    const bytes = randomBytes(250_000);
    let freeAtMs = 0;
    // 20 kB/s: parts wait for each other.
    const delayMs = (count: number) => {
      const nowMs = performance.now();
      freeAtMs = Math.max(freeAtMs, nowMs) + count / 20;
      return freeAtMs - nowMs + 10;
    };
    const began = performance.now();
    const { run, receivers, parts, onTheWay } = connect(bytes, { bob: { delayMs }, cleo: fast });
    await settled(new Promise((resolve) => setTimeout(resolve, 1)));
    await settled(receivers.get('cleo')!.read);
    expect(performance.now() - began).toBeLessThan(3000);
    await jest.advanceTimersByTimeAsync(4_000);
    const bob = onTheWay['bob']!;
    bob.most = 0;
    await settled(run);
    // A second of this line: two parts.
    expect(bob.most).toBeLessThanOrEqual(2 * 11 * 1024);
    expect(await receivers.get('bob')!.read).toEqual(bytes);
    // Nothing was sent to it twice, and the line was busy for most of the time.
    const ofBob = parts.filter(({ to }) => to.includes('bob'));
    expect(ofBob.reduce((sum, part) => sum + part.bytes, 0)).toBe(bytes.length);
    expect(performance.now() - began).toBeLessThan(17_000);
  });

  test('to a page that reads nothing stops at its credit, asks for more at long intervals, and ends after 5 minutes', async () => {
    const { run, parts, receivers } = connect(randomBytes(1_000_000), { bob: { ...fast, idle: true } });
    await jest.advanceTimersByTimeAsync(5000);
    const sent = parts.length;
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
    expect(bytes).toBeLessThanOrEqual(256 * 1024);
    expect(bytes).toBeGreaterThan(200 * 1024);
    await jest.advanceTimersByTimeAsync(290_000);
    const { readable } = receivers.get('bob')!.incoming.stream;
    await expect(settled(run)).rejects.toMatchObject({ code: 'stream_unread' });
    await expect(readable.getReader().read()).rejects.toMatchObject({ code: 'stream_unread' });
    const later = parts.slice(sent);
    expect(later.every((part) => part.bytes === 0)).toBe(true);
    expect(later.length).toBeGreaterThan(10);
    expect(later.length).toBeLessThan(25);
  });

  test('to a page that reads a little every few minutes does not end', async () => {
    const { outgoing, run, receivers } = connect(randomBytes(1_000_000), { bob: { ...fast, idle: true } });
    await jest.advanceTimersByTimeAsync(5000);
    const reader = receivers.get('bob')!.incoming.stream.readable.getReader();
    for (let count = 0; count < 5; count += 1) {
      await jest.advanceTimersByTimeAsync(270_000);
      expect((await reader.read()).value!.length).toBeGreaterThan(0);
    }
    outgoing.fail(new CallplaneError('aborted', 'Enough.'));
    await expect(run).rejects.toMatchObject({ code: 'aborted' });
  });

  test('to a participant that says nothing any more ends after a minute, and one that never accepts after 15 s', async () => {
    let isLost = false;
    const delayMs = () => (isLost ? undefined : 10);
    const silent = connect(randomBytes(1_000_000), { bob: { delayMs }, cleo: fast });
    await jest.advanceTimersByTimeAsync(200);
    isLost = true;
    const { delivered, failed } = await settled(silent.run);
    expect(delivered).toEqual(['cleo']);
    expect(failed.get('bob')).toMatchObject({ code: 'recipient_timeout' });
    await expect(settled(silent.receivers.get('bob')!.read)).rejects.toMatchObject({ code: 'sender_gone' });

    const began = performance.now();
    const deaf = connect(randomBytes(10), { bob: { delayMs: () => undefined } });
    await expect(settled(deaf.run)).rejects.toMatchObject({ code: 'recipient_timeout' });
    expect(performance.now() - began).toBeLessThan(16_000);
  });

  test('of a sender that vanishes ends after a minute', async () => {
    let isLost = false;
    const { receivers } = connect(randomBytes(1_000_000), { bob: { delayMs: () => (isLost ? undefined : 10) } });
    await jest.advanceTimersByTimeAsync(100);
    isLost = true;
    await expect(settled(receivers.get('bob')!.read)).rejects.toMatchObject({ code: 'sender_gone' });
  });

  test('that its sender gives up fails at both sides', async () => {
    const { outgoing, run, receivers } = connect(randomBytes(1_000_000), { bob: fast });
    await jest.advanceTimersByTimeAsync(100);
    outgoing.fail(new CallplaneError('internal', 'The disk is gone.'));
    await expect(run).rejects.toMatchObject({ message: 'The disk is gone.' });
    await expect(settled(receivers.get('bob')!.read)).rejects.toMatchObject({ code: 'stream_aborted' });
  });
});
