import { describe, expect, test } from '@jest/globals';
import { compareLogs } from './compare-logs.js';

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
const verdict = (subject: 'operation' | 'delivery' | 'session', lines: object[], killed = 0) => {
  const { compared, refused } = compareLogs(
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
  test('an attempt, and a retry after its delay', () => {
    expect(verdict(subject, [claimed, completed])).toBe('allowed');
    const again = said('claim', { at: 5100, lease: 'b', attempt: 2 });
    expect(verdict(subject, [claimed, failed, again])).toBe('allowed');
    expect(verdict(subject, [claimed, failed, { ...again, time: said('claim', { at: 4900 }).time }])).toBe(
      'claim after 2',
    );
  });

  test('no settlement with another lease, another attempt or without a claim', () => {
    expect(verdict(subject, [claimed, { ...completed, lease: 'b' }])).toBe('complete after 1');
    expect(verdict(subject, [claimed, { ...completed, attempt: 2 }])).toBe('complete after 1');
    expect(verdict(subject, [claimed, completed, said('retry', { at: 30, lease: 'a', attempt: 1 })])).toBe(
      'retry after 2',
    );
  });

  test('no attempt after a success, and none that is counted twice', () => {
    expect(verdict(subject, [claimed, completed, said('claim', { at: 2000, lease: 'b', attempt: 2 })])).toBe(
      'claim after 2',
    );
    expect(verdict(subject, [claimed, failed, said('claim', { at: 6000, lease: 'b', attempt: 1 })])).toBe(
      'claim after 2',
    );
  });

  test('lines of several processes in any order that their times allow', () => {
    const late = { ...completed, time: said('claim', { at: 9 }).time };
    expect(verdict(subject, [late, { ...claimed, tookMs: 8 }])).toBe('allowed');
    expect(
      verdict(subject, [
        { ...late, tookMs: 0 },
        { ...claimed, time: said('claim', { at: 30 }).time },
      ]),
    ).not.toBe('allowed');
  });
});

describe('of the lines about an operation, the model allows', () => {
  test('a second claim once the lease has expired, and no write of the first worker then', () => {
    const second = said('claim', { at: 1100, lease: 'b', attempt: 2 });
    expect(verdict('operation', [claimed, second])).toBe('allowed');
    expect(verdict('operation', [claimed, { ...second, time: said('claim', { at: 900 }).time }])).toBe('claim after 1');
    expect(verdict('operation', [claimed, second, { ...completed, time: said('claim', { at: 1200 }).time }])).toBe(
      'complete after 2',
    );
  });

  test('a new run only of a failed operation', () => {
    expect(verdict('operation', [claimed, completed, said('claim', { at: 50, lease: 'b', run: 2, attempt: 1 })])).toBe(
      'claim after 2',
    );
  });
});

describe('of the lines about a delivery, the model allows', () => {
  test('a second claim only after a sweep has ended the lease', () => {
    const second = said('claim', { at: 1200, lease: 'b', attempt: 2 });
    const { run: _, ...swept } = said('endLease', { at: 1100 });
    expect(verdict('delivery', [claimed, swept, second])).toBe('allowed');
    expect(verdict('delivery', [claimed, second])).toBe('claim after 1');
  });

  test('a late answer while no other worker has claimed the row', () => {
    expect(verdict('delivery', [claimed, { ...completed, time: said('claim', { at: 1500 }).time }])).toBe('allowed');
  });

  test('a replay, which starts a run', () => {
    expect(verdict('delivery', [claimed, completed, said('claim', { at: 50, lease: 'b', run: 2, attempt: 1 })])).toBe(
      'allowed',
    );
  });

  test('one move without a line for each process that was killed', () => {
    const { run: _, ...swept } = said('endLease', { at: 2100 });
    const second = said('claim', { at: 2200, lease: 'c', attempt: 3 });
    const cut = [claimed, { ...failed, untilMs: 0 }, swept, second];
    expect(verdict('delivery', cut, 1)).toBe('allowed');
    expect(verdict('delivery', cut)).toBe('endLease after 2');
    const killedAt = (at: number) => ({ ...said('claim', { at }), message: 'process killed' });
    expect(verdict('delivery', [...cut, killedAt(2050)])).toBe('allowed');
    // It cannot have made the move after its death.
    expect(verdict('delivery', [...cut, killedAt(15)])).toBe('endLease after 2');
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

  test('one after the other, in the order of their events', () => {
    const lines = [claimOf(1, 10), endOf(1, 20), claimOf(2, 30), endOf(2, 40), claimOf(3, 50), endOf(3, 60)];
    expect(verdict('delivery', lines)).toBe('allowed');
    const early = [claimOf(1, 10), claimOf(2, 15), endOf(1, 20), endOf(2, 40)];
    expect(verdict('delivery', early)).toBe('claim after 1');
    expect(verdict('delivery', [claimOf(2, 10), endOf(2, 20), claimOf(1, 30), endOf(1, 40)])).toBe('claim after 0');
  });

  test('none while an earlier one waits for its retry', () => {
    const lines = [claimOf(1, 10), endOf(1, 20, 'retry'), claimOf(2, 30), endOf(2, 40)];
    expect(verdict('delivery', lines)).toBe('claim after 2');
  });

  test('a replay beside the first runs, but not at the same time', () => {
    const again = { ...claimOf(1, 50), lease: 'again', run: 2 };
    const done = { ...endOf(1, 60), lease: 'again', run: 2 };
    const first = [claimOf(1, 10), endOf(1, 20), claimOf(2, 30)];
    expect(verdict('delivery', [...first, endOf(2, 40), again, done])).toBe('allowed');
    expect(verdict('delivery', [...first, again, endOf(2, 55), done])).toBe('claim after 3');
  });

  test('the parts of a long line', () => {
    const rows = Array.from({ length: 20 }, (_, at) => at + 1);
    const lines = rows.flatMap((row) => [claimOf(row, row * 20), endOf(row, row * 20 + 10)]);
    expect(verdict('delivery', lines)).toBe('allowed');
    const swapped = lines.map((line) => ({
      ...line,
      sequence: line.row === 'row_17' ? 18 : line.row === 'row_18' ? 17 : line.sequence,
    }));
    expect(verdict('delivery', swapped)).not.toBe('allowed');
  });
});

describe('of the lines about the sessions of a room, the model allows', () => {
  interface Told {
    at: number;
    participant?: string;
    session?: string;
    connection?: number;
    version?: number;
    places?: number;
    graceMs?: number;
    tookMs?: number;
  }
  const told = (transition: string, { at, ...fields }: Told) => ({
    message: 'transition',
    time: new Date(Date.UTC(2026, 0, 1) + at).toISOString(),
    row: 'room_1',
    transition,
    tookMs: 1,
    ...fields,
  });
  const join = (person: string, version: number, more: Partial<Told> = {}) =>
    told('join', {
      at: version * 10,
      participant: person,
      session: `s_${person}`,
      connection: 1,
      version,
      places: 2,
      ...more,
    });
  const about = (transition: string, person: string, version: number, more: Partial<Told> = {}) =>
    told(transition, { at: version * 10, session: `s_${person}`, connection: 1, version, ...more });
  const rooms = (lines: object[], killed = 0) => verdict('session', lines, killed);
  const [ada, bob] = [join('ada', 1), join('bob', 2)];

  test('the life of a room: joins, a lost connection, a resumption, leaving, a removal and the end', () => {
    const life = [
      ada,
      bob,
      about('disconnect', 'ada', 3),
      about('resume', 'ada', 4, { connection: 2 }),
      about('leave', 'bob', 5),
      told('acceptRemoval', { at: 60, participant: 'ada' }),
      about('remove', 'ada', 7),
      told('completeRemoval', { at: 75, participant: 'ada' }),
      join('cyd', 8),
      told('acceptEnd', { at: 90, version: 9 }),
      about('endOfRoom', 'cyd', 10),
      told('completeEnd', { at: 110 }),
    ].map(({ connection, ...line }) =>
      ['remove', 'endOfRoom'].includes(line.transition) ? line : { ...line, connection },
    );
    expect(rooms(life)).toBe('allowed');
    // Each of these lines is needed for the ones after it, or forbids them.
    for (const missing of [1, 5, 6, 9, 10]) {
      expect([missing, rooms(life.filter((_, at) => at !== missing))]).not.toEqual([missing, 'allowed']);
    }
  });

  test('a join of a participant with a session only if it ends that session', () => {
    const again = join('ada', 2, { session: 's_again' });
    expect(rooms([ada, again])).toBe('join after 1');
    expect(rooms([ada, { ...again, transition: 'supersede' }])).toBe('allowed');
    expect(rooms([ada, { ...again, transition: 'supersede' }, about('leave', 'ada', 3)])).toBe('leave after 2');
  });

  test('no more participants than the room has places', () => {
    expect(rooms([ada, bob, join('cyd', 3)])).toBe('join after 2');
    expect(rooms([ada, bob, about('leave', 'ada', 3), join('cyd', 4)])).toBe('allowed');
  });

  test('no join after a removal or an end was accepted, unless their times overlap', () => {
    const removal = told('acceptRemoval', { at: 15, participant: 'bob' });
    expect(rooms([ada, removal, bob])).toBe('join after 2');
    expect(rooms([ada, removal, { ...bob, tookMs: 10 }])).toBe('allowed');
    expect(rooms([ada, told('acceptEnd', { at: 15, version: 2 }), join('bob', 3)])).toBe('join after 2');
  });

  test('no completion of an end or a removal before the sessions have ended', () => {
    expect(rooms([ada, told('acceptEnd', { at: 20, version: 2 }), told('completeEnd', { at: 30 })])).toBe(
      'completeEnd after 2',
    );
    const removal = [
      told('acceptRemoval', { at: 20, participant: 'ada' }),
      told('completeRemoval', { at: 30, participant: 'ada' }),
    ];
    expect(rooms([ada, ...removal])).toBe('completeRemoval after 2');
    expect(
      rooms([
        ada,
        about('leave', 'ada', 2),
        ...removal.map((line, at) => ({
          ...line,
          ...told('', { at: 30 + at * 10 }),
          transition: line.transition,
          participant: 'ada',
        })),
      ]),
    ).toBe('allowed');
  });

  test('nothing of a connection that another one has replaced', () => {
    const resumed = [ada, about('resume', 'ada', 2, { connection: 2 })];
    expect(rooms([...resumed, about('disconnect', 'ada', 3, { connection: 2 })])).toBe('allowed');
    expect(rooms([...resumed, about('disconnect', 'ada', 3)])).toBe('disconnect after 2');
    expect(rooms([...resumed, about('leave', 'ada', 3)])).toBe('leave after 2');
    expect(rooms([...resumed, about('resume', 'ada', 3, { connection: 2 })])).toBe('resume after 2');
  });

  test('the end of a lost session after its grace, unless it was resumed meanwhile', () => {
    const lost = [ada, about('disconnect', 'ada', 2)];
    const swept = about('endLost', 'ada', 3, { at: 1030, graceMs: 1000 });
    expect(rooms([...lost, swept])).toBe('allowed');
    expect(rooms([...lost, { ...swept, graceMs: 2000 }])).toBe('endLost after 2');
    const resumed = about('resume', 'ada', 3, { connection: 2 });
    expect(rooms([...lost, resumed, { ...swept, version: 4 }])).toBe('endLost after 3');
  });

  test('transitions in the order of their versions, whatever the times of their lines are', () => {
    const late = { ...ada, time: join('ada', 9).time, tookMs: 200 };
    expect(rooms([about('leave', 'ada', 2), late])).toBe('allowed');
    expect(rooms([{ ...about('leave', 'ada', 1) }, { ...late, version: 2 }])).toBe('leave after 0');
  });

  test('one move without a line for each process that was killed', () => {
    const lines = [ada, about('resume', 'ada', 3, { connection: 3 })];
    expect(rooms(lines)).toBe('resume after 1');
    expect(rooms(lines, 1)).toBe('allowed');
    expect(rooms([ada, about('resume', 'ada', 4, { connection: 4 })], 1)).toBe('resume after 1');
  });
});
