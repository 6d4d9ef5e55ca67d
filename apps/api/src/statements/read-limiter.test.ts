import { SCOPES } from '@callplane/core';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Deps } from '../deps.js';
import type { Route } from '../http/route.js';
import { apiRoutes } from '../routes.js';
import { ReadLimiter } from './read-limiter.js';
import { WAITING_MAX } from './shared-statements.js';

let limiter: ReadLimiter;
/** Lists that run, with the function that ends them. */
let running: { name: string; end: (failure?: Error) => void }[];
beforeEach(() => {
  limiter = new ReadLimiter(5);
  running = [];
});

const read = (name: string) => () =>
  new Promise<string>((resolve, reject) => {
    running.push({ name, end: (failure) => (failure === undefined ? resolve(name) : reject(failure)) });
  });
const list = (environmentId: string, name = environmentId) => limiter.list(environmentId, read(name));
const heavy = (environmentId: string, name = environmentId) => limiter.heavy(environmentId, read(name));
const names = () => running.map(({ name }) => name);
async function endFirst(failure?: Error): Promise<void> {
  running.shift()!.end(failure);
  await new Promise(setImmediate);
}

describe('lists', () => {
  test('begin at once while connections are free, and one environment gets half of them', async () => {
    const all = [list('a', 'a1'), list('a', 'a2'), list('a', 'a3'), list('a', 'a4'), list('b')];
    expect(names()).toEqual(['a1', 'a2', 'a3', 'b']);
    await endFirst();
    expect(names()).toEqual(['a2', 'a3', 'b', 'a4']);
    while (running.length > 0) await endFirst();
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'a4', 'b']);
  });

  test('of all environments leave one connection, and environments take turns, also after a failure', async () => {
    const begun = ['a', 'a', 'a', 'b', 'b', 'b', 'c'].map((id, n) => list(id, `${id}${n}`).catch(() => 'failed'));
    expect(names()).toEqual(['a0', 'a1', 'a2', 'b3']);
    const more = list('a', 'a7');
    await endFirst(new Error('PostgreSQL is away'));
    // The environment whose turn it is may not be the one that ended.
    expect(names()).toEqual(['a1', 'a2', 'b3', 'a7']);
    await endFirst();
    await endFirst();
    expect(names()).toEqual(['b3', 'a7', 'b4', 'c6']);
    while (running.length > 0) await endFirst();
    expect((await Promise.all([...begun, more])).sort()).toEqual(['a1', 'a2', 'a7', 'b3', 'b4', 'b5', 'c6', 'failed']);
  });

  test('are refused beyond the bound or after too long a wait, while others continue', async () => {
    limiter = new ReadLimiter(2, 20);
    const first = list('a', 'first');
    const waiting = Array.from({ length: WAITING_MAX.perKey }, () => list('a').catch((error: unknown) => error));
    await expect(list('a', 'more')).rejects.toMatchObject({ code: 'RATE_LIMITED', headers: { 'retry-after': '1' } });
    for (const refused of await Promise.all(waiting)) expect(refused).toMatchObject({ code: 'RATE_LIMITED' });
    await endFirst();
    expect(await first).toBe('first');
    const next = list('a', 'next');
    expect(names()).toEqual(['next']);
    await endFirst();
    expect(await next).toBe('next');
  });

  test('of every route take turns', async () => {
    const reads = { list: (environmentId: string) => Promise.reject(new Error(`turn of ${environmentId}`)) };
    const routes = apiRoutes({ readLimiter: reads, console: null } as unknown as Deps).filter(
      (route) => route.list !== undefined,
    );
    const call = { caller: { environmentId: 'a' }, query: {}, cursor: { position: null } };
    expect(routes.length).toBeGreaterThan(10);
    for (const route of routes) {
      const reading = route.handle(call as unknown as Parameters<Route['handle']>[0]);
      expect([route.operationId, await reading.catch(String)]).toEqual([route.operationId, 'Error: turn of a']);
    }
  });
});

describe('heavy reads', () => {
  test('of an environment run one after the other, beside a list, and its neighbours get their turns', async () => {
    const all = [heavy('a', 'a1'), heavy('a', 'a2'), list('a', 'a3'), heavy('b', 'b1'), heavy('c', 'c1')];
    expect(names()).toEqual(['a1', 'b1']);
    await endFirst();
    expect(names()).toEqual(['b1', 'a2']);
    await endFirst();
    expect(names()).toEqual(['a2', 'c1']);
    await endFirst();
    expect(names()).toEqual(['c1', 'a3']);
    while (running.length > 0) await endFirst();
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1', 'c1']);
  });

  test.each(['readOverview', 'readUsage'])('%s is one of its environment', async (operationId) => {
    const reads = { heavy: (environmentId: string) => Promise.reject(new Error(`turn of ${environmentId}`)) };
    const deps = { readLimiter: reads, console: null } as unknown as Deps;
    const route = apiRoutes(deps).find((one) => one.operationId === operationId)!;
    const caller = { environmentId: 'env_a', keyType: 'secret', scopes: SCOPES };
    const call = { caller, query: { from: '2026-11-01', to: '2026-11-02' } };
    await expect(route.handle(call as unknown as Parameters<Route['handle']>[0])).rejects.toThrow('turn of env_a');
  });
});
