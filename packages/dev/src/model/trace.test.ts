import { describe, expect, test } from '@jest/globals';
import { startComparisons } from './compare.testkit.js';

const compare = startComparisons();

const LEASE_MS = 1000;

interface Said {
  /** Milliseconds. */
  at: number;
  lease?: string;
  run?: number;
  attempt?: number;
  tookMs?: number;
  untilMs?: number;
}
const said = (transition: string, { at, ...fields }: Said) => ({
  message: 'transition',
  time: new Date(Date.UTC(2026, 0, 1) + at).toISOString(),
  row: 'row_1',
  transition,
  run: 1,
  tookMs: 1,
  ...(transition === 'claim' ? { untilMs: LEASE_MS } : {}),
  ...fields,
});
const verdict = async (subject: 'operation' | 'delivery', lines: object[], killed = 0) => {
  const { compared, refused } = await compare(
    lines.map((line) => ({ subject, ...line })),
    killed,
  );
  expect(Object.values(compared).some((count) => count > 0)).toBe(true);
  const [first] = refused;
  return first === undefined ? 'allowed' : `${first.line.transition} after ${first.allowed}`;
};

const claimed = said('claim', { at: 10, lease: 'a', attempt: 1 });
const completed = said('complete', { at: 20, lease: 'a', attempt: 1 });
const failed = said('retry', { at: 20, lease: 'a', attempt: 1, untilMs: 5000 });

describe.each(['operation', 'delivery'] as const)('of the lines about one %s, the model allows', (subject) => {
  test('an attempt, and a retry after its delay', async () => {
    expect(await verdict(subject, [claimed, completed])).toBe('allowed');
    const again = said('claim', { at: 5100, lease: 'b', attempt: 2 });
    expect(await verdict(subject, [claimed, failed, again])).toBe('allowed');
    expect(await verdict(subject, [claimed, failed, { ...again, time: said('claim', { at: 4900 }).time }])).toBe(
      'claim after 2',
    );
  });

  test('no settlement with another lease, another attempt or without a claim', async () => {
    expect(await verdict(subject, [claimed, { ...completed, lease: 'b' }])).toBe('complete after 1');
    expect(await verdict(subject, [claimed, { ...completed, attempt: 2 }])).toBe('complete after 1');
    expect(await verdict(subject, [claimed, completed, said('retry', { at: 30, lease: 'a', attempt: 1 })])).toBe(
      'retry after 2',
    );
  });

  test('no attempt after a success, and none that is counted twice', async () => {
    expect(await verdict(subject, [claimed, completed, said('claim', { at: 2000, lease: 'b', attempt: 2 })])).toBe(
      'claim after 2',
    );
    expect(await verdict(subject, [claimed, failed, said('claim', { at: 6000, lease: 'b', attempt: 1 })])).toBe(
      'claim after 2',
    );
  });

  test('lines of several processes in any order that their times allow', async () => {
    const late = { ...completed, time: said('claim', { at: 9 }).time };
    expect(await verdict(subject, [late, { ...claimed, tookMs: 8 }])).toBe('allowed');
    expect(
      await verdict(subject, [
        { ...late, tookMs: 0 },
        { ...claimed, time: said('claim', { at: 30 }).time },
      ]),
    ).not.toBe('allowed');
  });
});

describe('of the lines about an operation, the model allows', () => {
  test('a second claim once the lease has expired, and no write of the first worker then', async () => {
    const second = said('claim', { at: 1100, lease: 'b', attempt: 2 });
    expect(await verdict('operation', [claimed, second])).toBe('allowed');
    expect(await verdict('operation', [claimed, { ...second, time: said('claim', { at: 900 }).time }])).toBe(
      'claim after 1',
    );
    expect(
      await verdict('operation', [claimed, second, { ...completed, time: said('claim', { at: 1200 }).time }]),
    ).toBe('complete after 2');
  });

  test('a new run only of a failed operation', async () => {
    expect(
      await verdict('operation', [claimed, completed, said('claim', { at: 50, lease: 'b', run: 2, attempt: 1 })]),
    ).toBe('claim after 2');
  });
});

describe('of the lines about a delivery, the model allows', () => {
  test('a second claim only after a sweep has ended the lease', async () => {
    const second = said('claim', { at: 1200, lease: 'b', attempt: 2 });
    const { run: _, ...swept } = said('endLease', { at: 1100 });
    expect(await verdict('delivery', [claimed, swept, second])).toBe('allowed');
    expect(await verdict('delivery', [claimed, second])).toBe('claim after 1');
  });

  test('a late answer while no other worker has claimed the row', async () => {
    expect(await verdict('delivery', [claimed, { ...completed, time: said('claim', { at: 1500 }).time }])).toBe(
      'allowed',
    );
  });

  test('a retry that a caller asks for, before its delay has passed or before the first attempt', async () => {
    const again = said('claim', { at: 30, lease: 'b', attempt: 2 });
    const { run: _, ...asked } = said('retryNow', { at: 25 });
    expect(await verdict('delivery', [claimed, failed, again])).toBe('claim after 2');
    expect(await verdict('delivery', [claimed, failed, asked, again])).toBe('allowed');
    expect(await verdict('delivery', [{ ...asked, time: said('claim', { at: 5 }).time }, claimed, completed])).toBe(
      'allowed',
    );
  });

  test('a replay, which starts a run', async () => {
    expect(
      await verdict('delivery', [claimed, completed, said('claim', { at: 50, lease: 'b', run: 2, attempt: 1 })]),
    ).toBe('allowed');
  });

  test('one move without a line for each process that was killed', async () => {
    const { run: _, ...swept } = said('endLease', { at: 2100 });
    const second = said('claim', { at: 2200, lease: 'c', attempt: 3 });
    const cut = [claimed, { ...failed, untilMs: 0 }, swept, second];
    expect(await verdict('delivery', cut, 1)).toBe('allowed');
    expect(await verdict('delivery', cut)).toBe('endLease after 2');
    const killedAt = (at: number) => ({ ...said('claim', { at }), message: 'process killed' });
    expect(await verdict('delivery', [...cut, killedAt(2050)])).toBe('allowed');
    // It cannot have made the move after its death.
    expect(await verdict('delivery', [...cut, killedAt(15)])).toBe('endLease after 2');
  });
});

describe('of the lines about deliveries in order, the model allows', () => {
  const of = (row: number, line: object) => ({
    ...line,
    row: `row_${row}`,
    endpoint: 'endpoint_1',
    room: 'room_1',
    sequence: row,
  });
  const claimOf = (row: number, at: number) => of(row, said('claim', { at, lease: `lease_${row}`, attempt: 1 }));
  const endOf = (row: number, at: number, name = 'complete') =>
    of(row, said(name, { at, lease: `lease_${row}`, attempt: 1, ...(name === 'retry' ? { untilMs: 5000 } : {}) }));

  test('one after the other, in the order of their events', async () => {
    const lines = [claimOf(1, 10), endOf(1, 20), claimOf(2, 30), endOf(2, 40), claimOf(3, 50), endOf(3, 60)];
    expect(await verdict('delivery', lines)).toBe('allowed');
    const early = [claimOf(1, 10), claimOf(2, 15), endOf(1, 20), endOf(2, 40)];
    expect(await verdict('delivery', early)).toBe('claim after 1');
    expect(await verdict('delivery', [claimOf(2, 10), endOf(2, 20), claimOf(1, 30), endOf(1, 40)])).toBe(
      'claim after 0',
    );
  });

  test('none while an earlier one waits for its retry', async () => {
    const lines = [claimOf(1, 10), endOf(1, 20, 'retry'), claimOf(2, 30), endOf(2, 40)];
    expect(await verdict('delivery', lines)).toBe('claim after 2');
  });

  test('a replay beside the first runs, but not at the same time', async () => {
    const again = { ...claimOf(1, 50), lease: 'again', run: 2 };
    const done = { ...endOf(1, 60), lease: 'again', run: 2 };
    const first = [claimOf(1, 10), endOf(1, 20), claimOf(2, 30)];
    expect(await verdict('delivery', [...first, endOf(2, 40), again, done])).toBe('allowed');
    expect(await verdict('delivery', [...first, again, endOf(2, 55), done])).toBe('claim after 3');
  });

  test('the parts of a long line', async () => {
    const rows = Array.from({ length: 20 }, (_, at) => at + 1);
    const lines = rows.flatMap((row) => [claimOf(row, row * 20), endOf(row, row * 20 + 10)]);
    expect(await verdict('delivery', lines)).toBe('allowed');
    const swapped = lines.map((line) => ({
      ...line,
      sequence: line.row === 'row_17' ? 18 : line.row === 'row_18' ? 17 : line.sequence,
    }));
    expect(await verdict('delivery', swapped)).not.toBe('allowed');
  });
});
