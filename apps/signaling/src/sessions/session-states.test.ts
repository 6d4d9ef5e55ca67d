import { describe, expect, test } from '@jest/globals';
import { CLOSE_REASONS, type CloseReason } from '@callplane/protocol';
import { eventually } from '@callplane/testing';
import fc from 'fast-check';
import type { Connection } from '../connections/connection.js';
import type { SessionMedia } from '../media/session-media.js';
import type { Room } from '../rooms/room.js';
import type { Cell } from '../states/state-table.js';
import { SESSION_STATES, type SessionAction, type SessionEvent, type SessionStateName } from './session-states.js';
import { Session, type SessionPort } from './session.js';

const STATES = Object.keys(SESSION_STATES) as SessionStateName[];
const EVENTS = Object.keys(SESSION_STATES.joining) as SessionEvent[];
const CLOSING: CloseReason[] = ['left', 'removed', 'room_ended', 'superseded', 'invalid_session'];

const over = (reason: CloseReason) => ({ reason, cause: 'test' });

/** A session with everything around it replaced by records of what it did. */
function setUp(isResumed: boolean, graceMs = 3_600_000, left: number[] = []) {
  const did: string[] = [];
  const connect = () => {
    const connection = {
      isOpen: true,
      send: () => did.push('send'),
      drop: () => did.push('drop'),
      close: (reason: CloseReason) => did.push(`close ${reason}`),
    };
    return connection as unknown as Connection;
  };
  const media = {
    mediaState: null,
    expectTakeOver: () => undefined,
    onConnectionLost: () => did.push('pause'),
    destroy: () => Promise.resolve(did.push('destroy')),
    abandon: () => did.push('abandon'),
  };
  const port: SessionPort = {
    reconnectGraceMs: graceMs,
    graceLeftMs: () => left.shift() ?? 0,
    markLost: () => did.push('markLost'),
    writeEnd: (_, reason) => did.push(`write ${reason}`),
    onGone: (_, __, over) => did.push(`gone ${over === null ? null : over.reason}`),
    onUnexpected: (_, event) => did.push(`unexpected ${event}`),
  };
  const facts = {
    sessionId: 'sess_1',
    tenant: { projectId: 'proj_1', environmentId: 'env_1' },
    roomId: 'room_1',
    participantId: 'part_1',
    permissions: [],
    connectionNumber: 1,
    autoSubscribe: true,
    isResumed,
  };
  const room = Object.create(null) as Room;
  const session = new Session(port, room, connect(), facts, () => media as unknown as SessionMedia);
  return { session, did, connect };
}

describe('the table of a session', () => {
  test.each(STATES.flatMap((state) => EVENTS.map((event) => [state, event] as const)))(
    'in %s has an entry for %s',
    (state, event) => {
      const cell = SESSION_STATES[state][event];
      if (typeof cell === 'string') expect(['ignore', 'never']).toContain(cell);
      else expect(STATES).toContain(cell.to);
    },
  );

  test('leaves nothing undone when this instance lets go of a session', () => {
    for (const state of STATES) {
      for (const event of EVENTS) {
        const cell = SESSION_STATES[state][event];
        if (typeof cell === 'string' || cell.to !== 'gone') continue;
        const actions: readonly string[] = cell.actions;
        expect([state, event, actions.filter((action) => action.endsWith('Media')).length]).toEqual([state, event, 1]);
        const endsConnection = ['detach', 'dropConnection', 'closeConnection'].some((action) =>
          actions.includes(action),
        );
        expect([state, event, endsConnection || state === 'grace']).toEqual([state, event, true]);
        // Another instance may hold the session unless PostgreSQL has said that it is over.
        const isOver = event === 'ended' || event === 'endWritten';
        expect([state, event, actions.includes('destroyMedia')]).toEqual([state, event, isOver]);
      }
    }
  });

  test('never leaves `gone`', () => {
    for (const event of EVENTS) expect(['ignore', 'never']).toContain(SESSION_STATES.gone[event]);
  });
});

describe('a session', () => {
  test('does what the table says, for any sequence of events', () => {
    const events = fc.array(fc.tuple(fc.constantFrom(...EVENTS), fc.constantFrom(...CLOSING)), { maxLength: 20 });
    fc.assert(
      fc.property(fc.boolean(), events, (isResumed, sequence) => {
        const { session, did, connect } = setUp(isResumed);
        let state: SessionStateName = isResumed ? 'resuming' : 'joining';
        let goneCount = 0;
        for (const [event, reason] of sequence) {
          const cell: Cell<SessionStateName, SessionAction> = SESSION_STATES[state][event];
          const hadConnection = session.connection !== null;
          did.length = 0;
          if (event === 'resumedHere') session.resumeHere(connect(), session.connectionNumber + 1);
          else session.dispatch(event, over(reason));
          if (typeof cell === 'string') {
            expect(did).toEqual(cell === 'never' ? [`unexpected ${event}`] : []);
            continue;
          }
          state = cell.to;
          const actions: readonly string[] = cell.actions;
          expect(session.state).toBe(state);
          expect(session.isConnected).toBe(state === 'connected');
          expect(did.includes('markLost')).toBe(actions.includes('markLost'));
          expect(did.includes('write left')).toBe(actions.includes('writeLeft'));
          expect(did.includes('write connection_lost')).toBe(actions.includes('writeLost'));
          expect(did.includes('drop')).toBe(actions.includes('dropConnection') && hadConnection);
          expect(did.includes(`close ${reason}`)).toBe(actions.includes('closeConnection') && hadConnection);
          if (state === 'gone') goneCount += 1;
          const gone = did.filter((one) => one.startsWith('gone'));
          expect(gone).toEqual(state === 'gone' ? [`gone ${actions.includes('destroyMedia') ? reason : null}`] : []);
          if (state === 'grace' || state === 'gone') expect(session.connection).toBeNull();
        }
        expect(goneCount).toBeLessThanOrEqual(1);
        session.dispatch('resumedElsewhere');
      }),
      { numRuns: 500 },
    );
  });

  test('without a connection ends after its grace period, and after an outage of PostgreSQL only when that has begun anew', async () => {
    const left = [1, 2];
    const { session, did } = setUp(false, 1, left);
    session.dispatch('welcomed');
    session.dispatch('lost');
    await eventually(() => did.includes('write connection_lost'));
    expect(left).toEqual([]);
  });

  test('sends nothing before its welcome, during its grace period and after its end', () => {
    const { session, did } = setUp(false);
    session.sendText('{}');
    session.dispatch('lost');
    session.sendText('{}');
    session.dispatch('endWritten', over('invalid_session'));
    session.sendText('{}');
    expect(did).toEqual(['write connection_lost', 'destroy', 'gone invalid_session']);
  });

  test('that leaves ends its connection after a second if PostgreSQL is away, and is gone once it is written', async () => {
    const { session, did } = setUp(false);
    session.dispatch('welcomed');
    await session.leave();
    expect(did).toEqual(['write left', 'close left']);
    session.dispatch('endWritten', over('left'));
    expect(did.at(-1)).toBe('gone left');
    expect(Object.keys(CLOSE_REASONS)).toContain('left');
  });
});
