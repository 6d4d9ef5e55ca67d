import { SCOPES } from '@callplane/core';
import { OverloadedError } from '@callplane/runtime';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import type { Deps } from '../deps.js';
import type { Route } from '../http/route.js';
import { apiRoutes } from '../routes.js';
import { HEAVY_READS_AT_ONCE, HEAVY_READS_WAITING_MAX, HeavyReads } from './heavy-reads.js';
import { ListTurns } from './list-turns.js';

let reads: HeavyReads;
/** Reads that run, by name, with the function that ends them. */
let running: Map<string, (failure?: Error) => void>;
let begun: number;
beforeEach(() => {
  reads = new HeavyReads();
  running = new Map();
  begun = 0;
});

const readOf = (environmentId: string, what: string): Promise<string> =>
  reads.read(environmentId, what, () => {
    begun += 1;
    const name = `${environmentId} ${what}`;
    return new Promise((resolve, reject) =>
      running.set(name, (failure) => {
        running.delete(name);
        if (failure === undefined) resolve(name);
        else reject(failure);
      }),
    );
  });
const end = (failure?: Error) => [...running.values()][0]!(failure);

describe('heavy reads', () => {
  test('of an environment run one after the other, and equal ones that wait share one', async () => {
    const all = [readOf('a', '1'), readOf('a', '2'), readOf('a', '2')];
    await eventually(() => running.size === 1);
    // The first one has begun before this request, so it may lack what was written in between.
    const late = readOf('a', '1');
    for (let n = 1; n <= 3; n++) {
      await eventually(() => begun === n && running.size === 1);
      end();
    }
    expect(await Promise.all([...all, late])).toEqual(['a 1', 'a 2', 'a 2', 'a 1']);
    expect(begun).toBe(3);
  });

  test('of all environments take turns, a few at once', async () => {
    const all = ['a', 'b', 'c', 'd'].flatMap((id) => [readOf(id, '1'), readOf(id, '2')]);
    const order: string[] = [];
    for (let n = 0; n < all.length; n++) {
      await eventually(() => running.size === Math.min(HEAVY_READS_AT_ONCE, all.length - n));
      order.push([...running.keys()][0]!);
      end();
    }
    await Promise.all(all);
    expect(order.slice(0, 4)).toEqual(['a 1', 'b 1', 'c 1', 'd 1']);
  });

  test('beyond the bound are refused, and those of other environments are not', async () => {
    const first = readOf('a', 'first');
    await eventually(() => running.size === 1);
    const waiting = Array.from({ length: HEAVY_READS_WAITING_MAX }, (_, n) => readOf('a', String(n)));
    await expect(readOf('a', 'more')).rejects.toThrow(OverloadedError);
    const other = readOf('b', '1');
    await eventually(() => running.has('b 1'));
    running.get('b 1')!();
    await other;
    for (let n = 0; n <= HEAVY_READS_WAITING_MAX; n++) {
      await eventually(() => running.size === 1);
      end();
    }
    await Promise.all([first, ...waiting]);
  });

  test('that fail reject for each request that shares them, and the next one runs', async () => {
    const failing = [readOf('a', '1'), readOf('a', '1')].map((read) =>
      read.catch((error: unknown) => (error as Error).message),
    );
    await eventually(() => running.size === 1);
    end(new Error('PostgreSQL is away'));
    expect(await Promise.all(failing)).toEqual(['PostgreSQL is away', 'PostgreSQL is away']);
    const next = readOf('a', '1');
    await eventually(() => running.size === 1);
    end();
    expect(await next).toBe('a 1');
  });
});

test.each(['readOverview', 'readUsage'])('%s is a heavy read of its environment', async (operationId) => {
  const deps = { heavyReads: { read: readOf }, lists: new ListTurns(1), console: null } as unknown as Deps;
  const route = apiRoutes(deps).find((one) => one.operationId === operationId)!;
  const caller = { environmentId: 'env_a', keyType: 'secret', scopes: SCOPES };
  const call = { caller, query: { from: '2026-11-01', to: '2026-11-02' } } as unknown as Parameters<Route['handle']>[0];
  const answer = await Promise.race([route.handle(call), eventually(() => running.size === 1)]);
  expect(answer).toBe(true);
  expect([...running.keys()]).toEqual([expect.stringMatching(/^env_a /)]);
});
