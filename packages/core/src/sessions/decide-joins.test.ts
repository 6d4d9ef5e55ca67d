import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decideJoins, type JoinCandidate, type JoiningRoom } from './decide-joins.js';

const room = (more: Partial<JoiningRoom> = {}): JoiningRoom => ({
  status: 'active',
  maxParticipants: 10,
  rosterPaged: false,
  liveSessions: 0,
  ...more,
});
const candidate = (
  participant: Partial<NonNullable<JoinCandidate['participant']>> = {},
  more: Partial<JoinCandidate> = {},
): JoinCandidate => ({
  participant: { removed: false, tokenRevoked: false, latestJoin: 1, hasLiveSession: false, ...participant },
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
