import { describe, expect, test } from '@jest/globals';
import { EvictingBound } from '@callplane/runtime';
import { Inbox, QUEUED_CHARS_BEFORE_ARRIVAL_MAX, QUEUED_CHARS_MAX, QUEUED_MESSAGES_MAX } from './inbox.js';

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
    const all = new EvictingBound(100);
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
