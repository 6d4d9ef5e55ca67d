import { randomBytes } from 'node:crypto';
import { formatApiKey, KeyedPace } from '@callplane/core';
import { expect, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { authenticate } from './authenticate.js';
import type { LookUpOptions } from './request-context.js';

test('looks up unknown keys beyond the limit with one statement for many', async () => {
  const looked: LookUpOptions[] = [];
  const keys: Parameters<typeof authenticate>[0]['keys'] = {
    hasSeen: () => false,
    find: (_, options = {}) => {
      looked.push(options);
      return Promise.resolve(null);
    },
  };
  const never = () => false;
  const pace = new KeyedPace({ perMinute: 1, burst: 2 }, 10);
  const metrics = { unauthenticated: () => undefined };
  const check = authenticate({ keys, console: null }, pace, metrics, { isUnlimited: never, isSignIn: never });
  const request = { headers: { authorization: `Bearer ${formatApiKey('secret', randomBytes(32))}` } } as Request;
  const response = { locals: { context: { ip: '192.0.2.1' } } } as unknown as Response;
  for (let n = 0; n < 3; n++) await expect(check(request, response, () => undefined)).rejects.toThrow();
  expect(looked.map(({ inBatch }) => inBatch)).toEqual([false, false, true]);
});
