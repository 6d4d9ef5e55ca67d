import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { openStream } from './stream.js';

/** The part of `EventSource` that the stream uses; each case plays the server. */
class FakeSource extends EventTarget {
  static readonly CLOSED = 2;
  static readonly opened: FakeSource[] = [];
  readyState = 0;
  constructor() {
    super();
    FakeSource.opened.push(this);
  }
  close(): void {
    this.readyState = FakeSource.CLOSED;
  }
  send(name: string, data: object): void {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
  refuse(): void {
    this.close();
    this.dispatchEvent(new Event('error'));
  }
}

describe('the stream', () => {
  const states: string[] = [];
  let random = 0;
  let close: () => void;
  beforeEach(() => {
    jest.useFakeTimers();
    FakeSource.opened.length = states.length = 0;
    Object.assign(globalThis, { EventSource: FakeSource });
    const listener = { onChanges: () => undefined, onGap: () => undefined, onRefused: () => undefined };
    close = openStream({ kinds: ['rooms'] }, { ...listener, onState: (state) => states.push(state) }, () => random);
  });
  afterEach(() => {
    close();
    jest.useRealTimers();
    Reflect.deleteProperty(globalThis, 'EventSource');
  });

  test('connects to another instance after a random part of the pause if its own drains', () => {
    random = 1;
    FakeSource.opened[0]!.send('end', { reason: 'draining' });
    expect(states.at(-1)).toBe('reconnecting');
    jest.advanceTimersByTime(499);
    expect(FakeSource.opened).toHaveLength(1);
    jest.advanceTimersByTime(1);
    expect(FakeSource.opened).toHaveLength(2);
  });

  test('connects at once after its greatest age', () => {
    FakeSource.opened[0]!.send('end', { reason: 'max_age' });
    expect(FakeSource.opened).toHaveLength(2);
    expect(states.at(-1)).toBe('connecting');
  });

  test('doubles its pauses up to 30 s while the API refuses it', () => {
    random = 0;
    const pauses = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
    for (const [at, pauseMs] of pauses.entries()) {
      FakeSource.opened[at]!.refuse();
      jest.advanceTimersByTime(pauseMs - 1);
      expect(FakeSource.opened).toHaveLength(at + 1);
      jest.advanceTimersByTime(1);
      expect(FakeSource.opened).toHaveLength(at + 2);
    }
  });
});
