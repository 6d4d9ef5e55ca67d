import { describe, expect, test } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { createLogger } from '../logging/logger.js';
import { Lifecycle } from './lifecycle.js';

const logger = createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'test', new PassThrough());

describe('the lifecycle of a process', () => {
  test('closes resources once in reverse order, and continues after a failure', async () => {
    const lifecycle = new Lifecycle(logger, 1000);
    const closed: string[] = [];
    lifecycle.onClose('database', async () => closed.push('database'));
    lifecycle.onClose('queue', () => Promise.reject(new Error('gone')));
    lifecycle.onClose('server', async () => closed.push('server'));
    expect(lifecycle.isClosing).toBe(false);
    const [first, second] = await Promise.all([lifecycle.close('test'), lifecycle.close('test')]);
    expect(lifecycle.isClosing).toBe(true);
    expect(closed).toEqual(['server', 'database']);
    expect([first, second]).toEqual([false, false]);
  });

  test('stops waiting at the deadline', async () => {
    const lifecycle = new Lifecycle(logger, 20);
    lifecycle.onClose('never', () => new Promise(() => undefined));
    expect(await lifecycle.close('test')).toBe(false);
  });
});
