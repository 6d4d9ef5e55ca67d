import { describe, expect, test } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { createLogger } from '../logging/logger.js';
import { Lifecycle } from './lifecycle.js';

const logger = createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'test', new PassThrough());

describe('the lifecycle of a process', () => {
  test('closes resources once in reverse order, and continues after a failure', async () => {
    const lifecycle = new Lifecycle(logger, { delayMs: 0, deadlineMs: 1000 });
    const closed: string[] = [];
    lifecycle.onClose('database', async () => closed.push('database'));
    lifecycle.onClose('queue', () => Promise.reject(new Error('gone')));
    lifecycle.onClose('server', async () => closed.push('server'));
    expect(lifecycle.phase).toBe('running');
    const [first, second] = await Promise.all([lifecycle.close('test'), lifecycle.close('test')]);
    expect(lifecycle.phase).toBe('stopped');
    expect(closed).toEqual(['server', 'database']);
    expect([first, second]).toEqual([false, false]);
  });

  test('stops waiting at the deadline', async () => {
    const lifecycle = new Lifecycle(logger, { delayMs: 0, deadlineMs: 20 });
    lifecycle.onClose('never', () => new Promise(() => undefined));
    expect(await lifecycle.close('test')).toBe(false);
  });

  test('is unready and takes new work until the drain delay is over', async () => {
    const lifecycle = new Lifecycle(logger, { delayMs: 20, deadlineMs: 1000 });
    const seen: unknown[] = [];
    const see = (at: string) => seen.push([at, lifecycle.phase, lifecycle.isClosing, lifecycle.isDraining]);
    lifecycle.onClose('server', async () => see('server closes'));
    see('start');
    const closed = lifecycle.close('test');
    see('signal');
    expect(await closed).toBe(true);
    see('end');
    expect(seen).toEqual([
      ['start', 'running', false, false],
      ['signal', 'unready', true, false],
      ['server closes', 'draining', true, true],
      ['end', 'stopped', true, true],
    ]);
  });

  test('drains at once when the process fails, also during the drain delay', async () => {
    for (const isStopping of [false, true]) {
      const lifecycle = new Lifecycle(logger, { delayMs: 2 ** 30, deadlineMs: 1000 });
      let closes = 0;
      lifecycle.onClose('server', async () => (closes += 1));
      if (isStopping) void lifecycle.close('test');
      expect(await lifecycle.fail()).toBe(true);
      expect(await lifecycle.close('test')).toBe(true);
      expect([lifecycle.phase, closes]).toEqual(['stopped', 1]);
    }
  });
});
