import { describe, expect, test } from '@jest/globals';
import { startComparisons } from './compare.testkit.js';

const compare = startComparisons();

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
  const rooms = async (lines: object[], killed = 0) => {
    const told = lines.map((line) => ({ ...line, subject: 'session' }));
    const { compared, refused } = await compare(told, killed);
    expect(compared.room).toBe(1);
    const [first] = refused;
    return first === undefined ? 'allowed' : `${first.line.transition} after ${first.allowed}`;
  };
  const [ada, bob] = [join('ada', 1), join('bob', 2)];

  test('the life of a room: joins, a lost connection, a resumption, leaving, a removal and the end', async () => {
    const life = [
      ada,
      bob,
      about('disconnect', 'ada', 3),
      about('resume', 'ada', 4, { connection: 2 }),
      about('leave', 'bob', 5),
      told('acceptRemoval', { at: 60, participant: 'ada' }),
      about('remove', 'ada', 7),
      told('completeRemoval', { at: 75, participant: 'ada' }),
      join('bob', 8, { session: 's_again' }),
      told('acceptEnd', { at: 90, version: 9 }),
      about('endOfRoom', 'again', 10),
      told('completeEnd', { at: 110 }),
    ].map(({ connection, ...line }) =>
      ['remove', 'endOfRoom'].includes(line.transition) ? line : { ...line, connection },
    );
    expect(await rooms(life)).toBe('allowed');
    // Each of these lines is needed for the ones after it, or forbids them.
    for (const missing of [1, 6, 10]) {
      expect([missing, await rooms(life.filter((_, at) => at !== missing))]).not.toEqual([missing, 'allowed']);
    }
  });

  test('a join of a participant with a session only if it ends that session', async () => {
    const again = join('ada', 2, { session: 's_again' });
    expect(await rooms([ada, again])).toBe('join after 1');
    expect(await rooms([ada, { ...again, transition: 'supersede' }])).toBe('allowed');
    expect(await rooms([ada, { ...again, transition: 'supersede' }, about('leave', 'ada', 3)])).toBe('leave after 2');
  });

  test('no more participants than the room has places', async () => {
    const full = join('ada', 1, { places: 1 });
    const next = join('bob', 2, { places: 1 });
    expect(await rooms([full, next])).toBe('join after 1');
    expect(await rooms([full, about('leave', 'ada', 2), { ...next, version: 3 }])).toBe('allowed');
  });

  test('no join after a removal or an end was accepted, unless their times overlap', async () => {
    const removal = told('acceptRemoval', { at: 15, participant: 'bob' });
    expect(await rooms([ada, removal, bob])).toBe('join after 2');
    expect(await rooms([ada, removal, { ...bob, tookMs: 10 }])).toBe('allowed');
    expect(await rooms([ada, told('acceptEnd', { at: 15, version: 2 }), join('bob', 3)])).toBe('join after 2');
  });

  test('no completion of an end or a removal before the sessions have ended', async () => {
    expect(await rooms([ada, told('acceptEnd', { at: 20, version: 2 }), told('completeEnd', { at: 30 })])).toBe(
      'completeEnd after 2',
    );
    const removal = [
      told('acceptRemoval', { at: 20, participant: 'ada' }),
      told('completeRemoval', { at: 30, participant: 'ada' }),
    ];
    expect(await rooms([ada, ...removal])).toBe('completeRemoval after 2');
    expect(
      await rooms([
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

  test('nothing of a connection that another one has replaced', async () => {
    const resumed = [ada, about('resume', 'ada', 2, { connection: 2 })];
    expect(await rooms([...resumed, about('disconnect', 'ada', 3, { connection: 2 })])).toBe('allowed');
    expect(await rooms([...resumed, about('disconnect', 'ada', 3)])).toBe('disconnect after 2');
    expect(await rooms([...resumed, about('leave', 'ada', 3)])).toBe('leave after 2');
    expect(await rooms([...resumed, about('resume', 'ada', 3, { connection: 2 })])).toBe('resume after 2');
  });

  test('the end of a lost session after its grace, unless it was resumed meanwhile', async () => {
    const lost = [ada, about('disconnect', 'ada', 2)];
    const swept = about('endLost', 'ada', 3, { at: 1030, graceMs: 1000 });
    expect(await rooms([...lost, swept])).toBe('allowed');
    expect(await rooms([...lost, { ...swept, graceMs: 2000 }])).toBe('endLost after 2');
    // The sweep has found the session of a gateway that was paused, and which then lost the connection.
    expect(await rooms([...lost, { ...swept, graceMs: 2000, tookMs: 1010 }])).toBe('allowed');
    const resumed = about('resume', 'ada', 3, { connection: 2 });
    expect(await rooms([...lost, resumed, { ...swept, version: 4 }])).toBe('endLost after 3');
  });

  test('the end of a session by the gateway that has lost its connection', async () => {
    const lost = [ada, about('disconnect', 'ada', 2)];
    expect(await rooms([...lost, about('leave', 'ada', 3)])).toBe('allowed');
    const resumed = about('resume', 'ada', 3, { connection: 2 });
    expect(await rooms([...lost, resumed, about('leave', 'ada', 4)])).toBe('leave after 3');
  });

  test('a join without a line only of a killed gateway, and where a version is missing', async () => {
    const end = (version: number) => [
      told('acceptEnd', { at: 90, version }),
      told('endOfRoom', { at: 100, participant: 'ada', session: 's_ada', version: version + 1 }),
      told('endOfRoom', { at: 100, participant: 'bob', session: 's_bob', version: version + 1 }),
      told('completeEnd', { at: 110 }),
    ];
    expect(await rooms([ada, ...end(3)])).toBe('endOfRoom after 3');
    expect(await rooms([ada, ...end(3)], 1)).toBe('allowed');
    expect(await rooms([ada, ...end(2)], 1)).toBe('endOfRoom after 3');
  });

  test('a removal without a line of its acceptance only if an API was killed', async () => {
    const removed = [
      ada,
      told('completeRemoval', { at: 20, participant: 'bob' }),
      told('acceptEnd', { at: 30, version: 2 }),
    ];
    expect(await rooms(removed)).toBe('completeRemoval after 1');
    expect(await rooms(removed, 1)).toBe('allowed');
    const accepted = told('acceptRemoval', { at: 40, participant: 'bob' });
    expect(await rooms([...removed, accepted], 1)).toBe('completeRemoval after 1');
  });

  test('transitions in the order of their versions, whatever the times of their lines are', async () => {
    const late = { ...ada, time: join('ada', 9).time, tookMs: 200 };
    expect(await rooms([about('leave', 'ada', 2), late])).toBe('allowed');
    expect(await rooms([{ ...about('leave', 'ada', 1) }, { ...late, version: 2 }])).toBe('leave after 0');
  });

  test('one move without a line for each process that was killed', async () => {
    const lines = [ada, about('resume', 'ada', 3, { connection: 3 })];
    expect(await rooms(lines)).toBe('resume after 1');
    expect(await rooms(lines, 1)).toBe('allowed');
    expect(await rooms([ada, about('resume', 'ada', 4, { connection: 4 })], 1)).toBe('resume after 1');
  });
});
