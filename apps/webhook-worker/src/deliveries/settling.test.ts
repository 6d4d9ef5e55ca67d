import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import type { ClaimedDelivery, TypedSql } from '@callplane/db';
import { createLogger } from '@callplane/runtime';
import { Settling } from './settling.js';

test('deliveries are released once PostgreSQL takes connections again', async () => {
  const noSlots = Object.assign(new Error('sorry, too many clients already'), { code: '53300' });
  const released: unknown[] = [];
  const $executeRaw = (_query: unknown, ids: unknown) =>
    released.push(ids) === 1 ? Promise.reject(noSlots) : Promise.resolve(2);
  const logger = createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'test', new PassThrough());
  const settling = new Settling({ $executeRaw } as unknown as TypedSql, logger);
  const claims = ['a', 'b'].map((id) => ({ id, leaseToken: id }) as ClaimedDelivery);
  await settling.release(claims);
  expect(released).toHaveLength(2);
});
