import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Deps } from '../deps.js';
import { apiRoutes } from '../routes.js';
import { LISTS_WAITING_MAX, ListTurns } from './list-turns.js';

let turns: ListTurns;
/** Lists that run, with the function that ends them. */
let running: { name: string; end: (failure?: Error) => void }[];
beforeEach(() => {
  turns = new ListTurns(5);
  running = [];
});

const list = (environmentId: string, name = environmentId) =>
  turns.run(
    environmentId,
    () =>
      new Promise<string>((resolve, reject) => {
        running.push({ name, end: (failure) => (failure === undefined ? resolve(name) : reject(failure)) });
      }),
  );
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

  test('beyond the bound are refused, and those that wait too long, and others go on', async () => {
    turns = new ListTurns(2, 20);
    const first = list('a', 'first');
    const waiting = Array.from({ length: LISTS_WAITING_MAX }, () => list('a').catch((error: unknown) => error));
    await expect(list('a', 'more')).rejects.toMatchObject({ code: 'RATE_LIMITED', headers: { 'retry-after': '1' } });
    for (const refused of await Promise.all(waiting)) expect(refused).toMatchObject({ code: 'RATE_LIMITED' });
    await endFirst();
    expect(await first).toBe('first');
    const next = list('a', 'next');
    expect(names()).toEqual(['next']);
    await endFirst();
    expect(await next).toBe('next');
  });

  test('of every route take turns, and the one that waits for events takes them for its reads', async () => {
    const lists = { run: (environmentId: string) => Promise.resolve(`turn of ${environmentId}`) };
    const routes = apiRoutes({ lists, console: null } as unknown as Deps).filter((route) => route.list !== undefined);
    const call = { caller: { environmentId: 'a' } } as unknown as Parameters<(typeof routes)[number]['handle']>[0];
    expect(routes.length).toBeGreaterThan(10);
    for (const route of routes) {
      if (route.operationId === 'listEvents') expect(route.waits).toBe(true);
      else expect([route.operationId, await route.handle(call)]).toEqual([route.operationId, 'turn of a']);
    }
  });
});
