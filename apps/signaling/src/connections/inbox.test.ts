import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  HeldByAll,
  Inbox,
  type Holder,
  QUEUED_CHARS_BEFORE_ARRIVAL_MAX,
  QUEUED_CHARS_MAX,
  QUEUED_MESSAGES_MAX,
} from './inbox.js';

/** An inbox whose messages end when the test says so; `sync` ones end at once. */
function setUp() {
  const begun: string[] = [];
  const waiting: (() => void)[] = [];
  const inbox = new Inbox<string>(
    (message) => {
      begun.push(message);
      return message === 'sync' ? undefined : new Promise<void>((resolve) => waiting.push(resolve));
    },
    () => {},
  );
  const finish = async () => {
    waiting.shift()?.();
    await new Promise(setImmediate);
  };
  return { inbox, begun, finish };
}

describe('an inbox', () => {
  test('handles one message after another, and those without a promise at once', async () => {
    const { inbox, begun, finish } = setUp();
    for (const message of ['sync', 'sync', 'a', 'sync', 'b']) inbox.push(message, 1);
    expect(begun).toEqual(['sync', 'sync', 'a']);
    await finish();
    expect(begun).toEqual(['sync', 'sync', 'a', 'sync', 'b']);
  });

  test('refuses a message beyond its limit of messages', async () => {
    const { inbox, finish } = setUp();
    inbox.push('a', 1);
    for (let n = 0; n < QUEUED_MESSAGES_MAX; n++) expect(inbox.push('b', 1)).toBe(true);
    expect(inbox.push('b', 1)).toBe(false);
    await finish();
    expect(inbox.push('b', 1)).toBe(true);
  });

  test('holds few characters until the first message is handled, and more after it', async () => {
    const { inbox, finish } = setUp();
    inbox.push('first', QUEUED_CHARS_BEFORE_ARRIVAL_MAX);
    expect(inbox.push('a', QUEUED_CHARS_BEFORE_ARRIVAL_MAX)).toBe(true);
    expect(inbox.push('b', 1)).toBe(false);
    await finish();
    expect(inbox.push('b', QUEUED_CHARS_MAX)).toBe(true);
    expect(inbox.push('c', 1)).toBe(false);
  });

  test('is stopped when too many messages wait, most of them in it', async () => {
    const all = new HeldByAll(100);
    const [cut, held] = [[] as string[], [] as (() => void)[]];
    const [large, small] = ['large', 'small'].map((name) => {
      const hold = () => new Promise<void>((resolve) => held.push(resolve));
      return new Inbox<string>(hold, () => cut.push(name), all);
    });
    // The first message of each is being handled, and waits no more.
    for (const inbox of [large!, small!]) expect(inbox.push('first', 1000)).toBe(true);
    large!.push('a', 80);
    small!.push('b', 20);
    expect([cut, all.total]).toEqual([[], 100]);
    small!.push('c', 1);
    expect([cut, all.total]).toEqual([['large'], 21]);
    for (const finish of held) finish();
    await new Promise(setImmediate);
    // The small one handles 'b' now, and the large one nothing.
    expect([held.length, all.total]).toEqual([3, 1]);
    small!.stop();
    expect(all.total).toBe(0);
  });

  test('that is stopped handles nothing more', async () => {
    const { inbox, begun, finish } = setUp();
    inbox.push('a', 1);
    inbox.push('b', 1);
    inbox.stop();
    expect(inbox.push('c', 1)).toBe(true);
    await finish();
    expect(begun).toEqual(['a']);
  });
});

test('all holders together hold no more than the bound, and the ones that hold most are cut', () => {
  const change = fc.record({ holder: fc.nat({ max: 5 }), held: fc.nat({ max: 80 }) });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const all = new HeldByAll(100);
      const held = new Map<Holder, number>();
      let cut: number[] = [];
      const holders = Array.from({ length: 6 }, (): Holder => {
        const holder: Holder = {
          stalledSeconds: 0,
          cut: () => {
            cut.push(held.get(holder)!);
            held.delete(holder);
          },
        };
        return holder;
      });
      for (const { holder, held: bytes } of changes) {
        cut = [];
        held.set(holders[holder]!, bytes);
        const wanted = [...held.values()].reduce((sum, each) => sum + each, 0);
        all.set(holders[holder]!, bytes);
        const kept = [...held.values()];
        expect(all.total).toBe(kept.reduce((sum, each) => sum + each, 0));
        expect(all.total).toBeLessThanOrEqual(100);
        if (wanted <= 100) expect(cut).toEqual([]);
        for (const one of cut) expect(one).toBeGreaterThanOrEqual(Math.max(0, ...kept));
      }
    }),
  );
});
