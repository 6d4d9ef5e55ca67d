import { describe, expect, test } from '@jest/globals';
import { Emitter } from './emitter.js';

class Bell extends Emitter<{ ring: number; silence: undefined }> {
  ring(times: number): void {
    this.emit('ring', times);
  }
}

describe('emitter', () => {
  test('calls listeners in the order in which they were added, until they are removed', () => {
    const bell = new Bell();
    const calls: string[] = [];
    const stop = bell.on('ring', (times) => calls.push(`a${times}`));
    bell.on('ring', (times) => calls.push(`b${times}`));
    bell.ring(1);
    stop();
    bell.ring(2);
    expect(calls).toEqual(['a1', 'b1', 'b2']);
  });

  test('an event in progress still reaches a listener that is removed, but not one that is added', () => {
    const bell = new Bell();
    const calls: string[] = [];
    bell.on('ring', () => {
      stop();
      bell.on('ring', () => calls.push('late'));
    });
    const stop = bell.on('ring', () => calls.push('going'));
    bell.ring(1);
    expect(calls).toEqual(['going']);
  });

  test('a listener that throws does not stop the others, and its error is reported', () => {
    const bell = new Bell();
    const calls: number[] = [];
    bell.on('ring', () => {
      throw new Error('mine');
    });
    bell.on('ring', (times) => calls.push(times));
    const reported: unknown[] = [];
    globalThis.reportError = (error) => reported.push(error);
    bell.ring(3);
    expect(calls).toEqual([3]);
    expect(reported).toMatchObject([{ message: 'mine' }]);
  });
});
