import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decideJoins, QualityClock, WAITING_MAX, worstLevel, type JoinCandidate, type JoiningRoom } from './session.js';

const seconds = (more: object) => ({ good: 0, fair: 0, poor: 0, lost: 0, relayed: 0, ...more });

describe('the quality clock', () => {
  test('counts nothing before the first report, even if the connection is lost', () => {
    const clock = new QualityClock();
    clock.lose(5000);
    expect(clock.take(9000)).toBeNull();
  });

  test('counts the seconds of each level and of relaying, and keeps fractions for the next call', () => {
    const clock = new QualityClock();
    clock.set('good', false, 1000);
    clock.set('poor', true, 3600);
    expect(clock.take(5000)).toEqual(seconds({ good: 2, poor: 1, relayed: 1 }));
    expect(clock.take(5100)).toBeNull();
    expect(clock.take(5700)).toEqual(seconds({ poor: 1, relayed: 1 }));
    clock.set('good', false, 5700);
    expect(clock.take(6100)).toEqual(seconds({ good: 1 }));
  });

  test('counts the time without a connection as lost until the next report', () => {
    const clock = new QualityClock();
    clock.set('good', false, 0);
    clock.lose(2000);
    clock.set('fair', false, 5000);
    expect(clock.take(6000)).toEqual(seconds({ good: 2, lost: 3, fair: 1 }));
  });
});

test('the worst level is the worst one that lasted a second', () => {
  expect(worstLevel(seconds({ good: 9, poor: 1 }))).toBe('poor');
  expect(worstLevel(seconds({ lost: 1, good: 2 }))).toBe('lost');
  expect(worstLevel(seconds({}))).toBeNull();
});

const room = (more: Partial<JoiningRoom> = {}): JoiningRoom => ({
  status: 'active',
  maxParticipants: 10,
  rosterPaged: false,
  liveSessions: 0,
  waitingSessions: 0,
  ...more,
});
const candidate = (
  participant: Partial<NonNullable<JoinCandidate['participant']>> = {},
  more: Partial<JoinCandidate> = {},
): JoinCandidate => ({
  participant: {
    ...{ removed: false, tokenRevoked: false, latestJoin: 1, hasLiveSession: false, waiting: false },
    ...participant,
  },
  joinNumber: 1,
  ...more,
});

describe('joins of one batch', () => {
  test('each refused join gets its own reason', () => {
    const { decisions } = decideJoins(
      room({ maxParticipants: 2, liveSessions: 1 }),
      [
        candidate({}, { participant: null }),
        candidate({ removed: true, tokenRevoked: true }),
        candidate({ tokenRevoked: true }),
        candidate({ latestJoin: 2 }),
        candidate(),
        candidate(),
        candidate({ hasLiveSession: true }),
      ],
      100,
    );
    expect(decisions).toEqual(['not_found', 'removed', 'token_revoked', 'overtaken', 'join', 'capacity', 'join']);
  });

  test('into the lobby need one of its places, and none of the room', () => {
    const waiting = candidate({ waiting: true });
    const full = { maxParticipants: 1, liveSessions: 1 };
    expect(decideJoins(room({ ...full, waitingSessions: WAITING_MAX - 1 }), [waiting, waiting], 1)).toEqual({
      decisions: ['join', 'capacity'],
      rosterPaged: false,
    });
    const back = candidate({ waiting: true, hasLiveSession: true });
    expect(decideJoins(room({ waitingSessions: WAITING_MAX }), [back, candidate()], 1).decisions).toEqual([
      'join',
      'join',
    ]);
  });

  test('make the room paged when it has more participants than the limit', () => {
    expect(decideJoins(room({ liveSessions: 2 }), [candidate(), candidate()], 4).rosterPaged).toBe(false);
    expect(decideJoins(room({ liveSessions: 3 }), [candidate(), candidate()], 4)).toEqual({
      decisions: ['join', 'join'],
      rosterPaged: true,
    });
    // A participant that replaces its own session needs no further place.
    const own = candidate({ hasLiveSession: true });
    expect(decideJoins(room({ liveSessions: 4 }), [own], 4).rosterPaged).toBe(false);
  });

  test('refuse a join for the capacity exactly if the room is full', () => {
    const anyCandidate = fc
      .record({ hasLiveSession: fc.boolean(), removed: fc.boolean() })
      .map((participant) => candidate(participant));
    fc.assert(
      fc.property(
        fc.array(anyCandidate, { maxLength: 12 }),
        fc.nat(8),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 6 }),
        fc.boolean(),
        (candidates, others, maxParticipants, rosterFullMax, rosterPaged) => {
          const own = candidates.filter(({ participant }) => participant?.hasLiveSession).length;
          const liveSessions = Math.min(others, Math.max(0, maxParticipants - own)) + own;
          fc.pre(liveSessions <= maxParticipants);
          const made = decideJoins(room({ liveSessions, maxParticipants, rosterPaged }), candidates, rosterFullMax);
          const joined = candidates.filter((_, at) => made.decisions[at] === 'join');
          const live = liveSessions + joined.filter(({ participant }) => !participant?.hasLiveSession).length;
          expect(live).toBeLessThanOrEqual(maxParticipants);
          if (made.decisions.includes('capacity')) expect(live).toBe(maxParticipants);
          if (live > Math.max(rosterFullMax, liveSessions)) expect(made.rosterPaged).toBe(true);
          candidates.forEach(({ participant }, at) =>
            expect(made.decisions[at] === 'removed').toBe(participant?.removed),
          );
        },
      ),
    );
  });
});
