import { describe, expect, test } from '@jest/globals';
import { Emitter } from './emitter.js';

class Bell extends Emitter<{ ring: number; silence: undefined }> {
  ring(times: number): void {
    this.emit('ring', times);
  }
}

describe('emitter', () => {
  test('calls listeners in the order in which they came, until they go', () => {
    const bell = new Bell();
    const heard: string[] = [];
    const stop = bell.on('ring', (times) => heard.push(`a${times}`));
    bell.on('ring', (times) => heard.push(`b${times}`));
    bell.ring(1);
    stop();
    bell.ring(2);
    expect(heard).toEqual(['a1', 'b1', 'b2']);
  });

  test('`once` hears one event, also when that event causes another', () => {
    const bell = new Bell();
    const heard: number[] = [];
    bell.once('ring', (times) => {
      heard.push(times);
      bell.ring(times + 1);
    });
    bell.ring(1);
    expect(heard).toEqual([1]);
  });

  test('a listener that goes while others are called is called this time, one that comes is not', () => {
    const bell = new Bell();
    const heard: string[] = [];
    bell.on('ring', () => {
      stop();
      bell.on('ring', () => heard.push('late'));
    });
    const stop = bell.on('ring', () => heard.push('going'));
    bell.ring(1);
    expect(heard).toEqual(['going']);
  });

  test('a listener that throws keeps nobody else from hearing, and its error is not swallowed', () => {
    const bell = new Bell();
    const heard: number[] = [];
    bell.on('ring', () => {
      throw new Error('mine');
    });
    bell.on('ring', (times) => heard.push(times));
    const reported: unknown[] = [];
    globalThis.reportError = (error) => reported.push(error);
    bell.ring(3);
    expect(heard).toEqual([3]);
    expect(reported).toMatchObject([{ message: 'mine' }]);
  });
});
