import { afterEach, describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { OperationScheduler, type Candidate, type OperationSchedulerSettings, type ScanBounds } from './scheduler.js';

const closers: (() => Promise<unknown>)[] = [];
afterEach(() => Promise.all(closers.splice(0).map((close) => close())));

/** Work that a test ends explicitly. */
function bench(settings: Partial<OperationSchedulerSettings> = {}) {
  const started: string[] = [];
  const ends = new Map<string, (dueInMs: number | null) => void>();
  const scans: ScanBounds[] = [];
  const errors: unknown[] = [];
  const due: Candidate[] = [];
  const scheduler = new OperationScheduler({
    slots: 4,
    scanIntervalMs: 60_000,
    work: (id) => {
      started.push(id);
      return new Promise((resolve) => ends.set(id, resolve));
    },
    scan: (scan) => {
      scans.push(scan);
      // As in PostgreSQL, rows stay due until work on them begins.
      const counts = new Map<string, number>();
      const found = due.filter(({ id, environmentId }) => {
        const count = counts.get(environmentId) ?? 0;
        if (started.includes(id) || count >= scan.perEnvironment) return false;
        counts.set(environmentId, count + 1);
        return true;
      });
      return Promise.resolve(found.slice(0, scan.limit));
    },
    jobsArrive: () => true,
    onError: (error) => errors.push(error),
    ...settings,
  });
  const end = async (id: string, dueInMs: number | null = null): Promise<void> => {
    ends.get(id)!(dueInMs);
    ends.delete(id);
    await new Promise(setImmediate);
  };
  const endAll = (): Promise<unknown> => Promise.all([...ends.keys()].map((id) => end(id)));
  closers.push(async () => {
    const closed = scheduler.close();
    await endAll();
    await closed;
  });
  return { scheduler, started, scans, errors, due, end, endAll };
}
const of = (environmentId: string, count: number): Candidate[] =>
  Array.from({ length: count }, (_, n) => ({ id: `${environmentId}${n}`, environmentId }));

describe('the scheduler of operations', () => {
  test('works on as many rows concurrently as it has slots, and alternates between environments', async () => {
    const { scheduler, started, end, endAll } = bench();
    for (const candidate of of('a', 10)) scheduler.announce(candidate);
    for (const candidate of of('b', 2)) scheduler.announce(candidate);
    expect(started).toEqual(['a0', 'a1', 'a2', 'a3']);
    await end('a0');
    expect(started.at(-1)).toBe('b0');
    await end('b0');
    expect(started.at(-1)).toBe('b1');
    for (let n = 0; n < 4; n += 1) await endAll();
    expect(started).toHaveLength(12);
  });

  test('scans once at its start, and then rarely while jobs announce due rows', async () => {
    const { scans } = bench();
    await eventually(() => scans.length === 1);
    expect(scans[0]).toEqual({ quietMs: 8000, perEnvironment: 16, limit: 64 });
  });

  test('scans eagerly while no job can arrive, and works on the rows that it finds', async () => {
    const { scans, due, started } = bench({ jobsArrive: () => false });
    due.push(...of('a', 2));
    await eventually(() => started.length === 2);
    await eventually(() => scans.length >= 3);
    expect(scans.every(({ quietMs }) => quietMs === 500)).toBe(true);
  });

  test('scans again without waiting for its interval while there are more rows', async () => {
    const { scheduler, due, started, endAll } = bench();
    due.push(...of('a', 60), ...of('b', 60));
    // The first scan has begun. A job without room makes the next scans eager, although the interval is a minute.
    for (const candidate of of('z', 21)) scheduler.announce(candidate);
    await eventually(async () => {
      await endAll();
      return started.length >= 20 + 120;
    });
    expect(new Set(started).size).toBe(started.length);
  });

  test('bounds the waiting rows: it drops a job without room, and a scan finds its row', async () => {
    const { scheduler, started, due, endAll } = bench();
    for (const candidate of of('a', 100)) scheduler.announce(candidate);
    due.push(...of('a', 100).slice(20));
    await eventually(async () => {
      await endAll();
      return new Set(started).size === 100;
    });
    expect(started).toHaveLength(100);
  });

  test('works on a row that is not due yet once it is due', async () => {
    const { scheduler, started, end } = bench();
    scheduler.announce({ id: 'early', environmentId: 'a' });
    await end('early', 50);
    await eventually(() => started.length === 2);
    expect(started).toEqual(['early', 'early']);
  });

  test('reports work and scans that fail, and continues with the next ones', async () => {
    let fails = true;
    const { scheduler, errors, started } = bench({
      jobsArrive: () => false,
      scan: () => {
        if (fails) return Promise.reject(new Error('no database'));
        return Promise.resolve([]);
      },
      work: (id) => {
        started.push(id);
        return id === 'bad' ? Promise.reject(new Error('no database')) : Promise.resolve(null);
      },
    });
    scheduler.announce({ id: 'bad', environmentId: 'a' });
    await eventually(() => errors.length >= 2);
    fails = false;
    scheduler.announce({ id: 'good', environmentId: 'a' });
    await eventually(() => started.includes('good'));
  });

  test('closes by waiting for running work, takes no more rows, and returns the waiting ones', async () => {
    const { scheduler, started, end } = bench();
    for (const candidate of of('a', 6)) scheduler.announce(candidate);
    let left: string[] | undefined;
    void scheduler.close().then((ids) => (left = ids));
    scheduler.announce({ id: 'late', environmentId: 'b' });
    for (const id of ['a0', 'a1', 'a2', 'a3']) {
      await new Promise(setImmediate);
      expect(left).toBeUndefined();
      await end(id);
    }
    await eventually(() => left !== undefined);
    expect(left).toEqual(['a4', 'a5']);
    expect(started).toEqual(['a0', 'a1', 'a2', 'a3']);
  });
});
