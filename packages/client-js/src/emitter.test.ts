import { describe, expect, test } from '@jest/globals';
import { Emitter } from './emitter.js';

class Bell extends Emitter<{ ring: number; silence: undefined }> {
  ring(times: number): void {
    this.emit('ring', times);
  }
}

describe('emitter', () => {
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
