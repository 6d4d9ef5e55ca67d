import { PassThrough } from 'node:stream';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { DueClaim, DueRequest, SchedulableEndpoint } from '@callplane/db';
import { createLogger } from '@callplane/runtime';
import type { Deps } from '../deps.js';
import { Beginnings } from './beginnings.js';
import { Workers } from './workers.js';

const endpoint = (endpointId: string, slotMs: number | null = null): SchedulableEndpoint => ({
  endpointId,
  environmentId: 'env',
  slotMs,
});

describe('the workers of a process', () => {
  /** The endpoints of each claim. */
  let claims: string[][];
  let answers: (() => void)[];
  let workers: Workers;

  beforeEach(() => {
    claims = [];
    answers = [];
    const claim = (requests: readonly DueRequest[]) => {
      claims.push(requests.map(({ endpointId }) => endpointId));
      const nothing = requests.map(({ endpointId, isRetry }): DueClaim => {
        return { endpointId, isRetry, claimed: [], isGated: false, nextInMs: null };
      });
      return new Promise<DueClaim[]>((resolve) => answers.push(() => resolve(nothing)));
    };
    const deps = {
      beginnings: new Beginnings(),
      database: {},
      logger: createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'test', new PassThrough()),
      openClaims: { claim },
    };
    workers = new Workers(deps as unknown as Deps, 3, { slots: 4, ahead: 4 });
  });

  const tick = () => new Promise((resolve) => setImmediate(resolve));

  test('share the endpoints whose doorbells ring before the first claim is answered', () => {
    workers.wakeRead(['a', 'b', 'c', 'd'].map((id) => endpoint(id)));
    expect(claims).toEqual([['a'], ['b'], ['c']]);
  });

  test('leave an endpoint to the worker that knows it while that one has little to do', async () => {
    workers.wakeRead([endpoint('a', 5)]);
    // Both kinds of deliveries.
    for (let kind = 0; kind < 2; kind += 1) {
      answers.pop()?.();
      await tick();
    }
    expect(claims).toEqual([['a'], ['a']]);
    workers.wakeRead([endpoint('b', 5)]);
    // The first worker knows the endpoint, and waits for the answer of its claim.
    workers.wake(['a']);
    expect(claims.slice(2)).toEqual([['b']]);
    answers.pop()?.();
    await tick();
    expect(claims[3]?.sort()).toEqual(['a', 'b']);
  });
});
