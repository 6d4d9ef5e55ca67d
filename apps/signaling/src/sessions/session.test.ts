import { describe, expect, test } from '@jest/globals';
import { bucketTimes, TokenBucket } from '@callplane/core';
import { CLOSE_REASONS, type CloseReason } from '@callplane/protocol';
import { eventually } from '@callplane/testing';
import fc from 'fast-check';
import type { Client } from '../clients/client.js';
import type { SessionMedia } from '../media/session-media.js';
import type { Room } from '../rooms/room.js';
import { Session, TRANSITIONS, type SessionEvent, type SessionPort } from './session.js';

const EVENTS = [...new Set(Object.values(TRANSITIONS).flatMap((events) => Object.keys(events)))] as SessionEvent[];
const CLOSING: CloseReason[] = ['left', 'removed', 'room_ended', 'superseded', 'invalid_session'];

const unlimited = new TokenBucket(bucketTimes({ perSecond: 0, burst: 1 }));
const over = (reason: CloseReason) => ({ reason, cause: 'test' });

/** A session with everything around it replaced by records of its calls. */
function setUp(isResumed: boolean, graceMs = 3_600_000, left: number[] = []) {
  const did: string[] = [];
  const connect = (): Client => ({
    id: 'conn_1',
    logFields: {},
    addressKey: '',
    isLeaving: false,
    ending: null,
    sendWelcome: () => did.push('welcome'),
    sendText: () => did.push('send'),
    sendPart: () => true,
    pauseMs: 0,
    drop: () => did.push('drop'),
    close: (reason: CloseReason) => did.push(`close ${reason}`),
  });
  const media = {
    record: null,
    expectTakeOver: () => undefined,
    onConnectionLost: () => did.push('pause'),
    destroy: () => Promise.resolve(did.push('destroy')),
    abandon: () => did.push('abandon'),
  };
  const port: SessionPort = {
    reconnectGraceMs: graceMs,
    newLimits: () => ({ messages: unlimited, metadata: unlimited }),
    graceLeftMs: () => left.shift() ?? 0,
    markLost: () => did.push('markLost'),
    writeEnd: (_, reason) => did.push(`write ${reason}`),
    onGone: (_, __, over) => did.push(`gone ${over === null ? null : over.reason}`),
    onUnexpected: (_, event) => did.push(`unexpected ${event}`),
  };
  const facts = {
    sessionId: 'sess_1',
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

describe('a session', () => {
  test('keeps its promises to its client, its media and PostgreSQL, for any sequence of events', () => {
    const events = fc.array(fc.tuple(fc.constantFrom(...EVENTS), fc.constantFrom(...CLOSING)), { maxLength: 20 });
    fc.assert(
      fc.property(fc.boolean(), events, (isResumed, sequence) => {
        const { session, did, connect } = setUp(isResumed);
        for (const [event, reason] of sequence) {
          const from = session.state;
          const hadClient = session.client !== null;
          did.length = 0;
          if (event === 'resumedHere') session.resumeHere(connect(), session.connectionNumber + 1);
          else session.dispatch(event, over(reason));
          const to = session.state;
          if (from === 'gone') {
            expect([to, did]).toEqual(['gone', []]);
            continue;
          }
          if (did.includes(`unexpected ${event}`)) {
            expect([to, did]).toEqual([from, [`unexpected ${event}`]]);
            continue;
          }
          expect(session.isConnected).toBe(to === 'connected');
          // Only a client that may come back keeps the session.
          if (event === 'lost' && from !== 'joining' && from !== 'ending') expect(to).toBe('grace');
          if (event === 'closedForGood' || event === 'leave') expect(to).toBe('ending');
          if (to === 'grace') expect([session.client, did]).toEqual([null, ['pause', 'markLost']]);
          // Each end is written once.
          const end = event === 'leave' ? 'write left' : 'write connection_lost';
          expect(did.filter((one) => one.startsWith('write'))).toEqual(
            to === 'ending' && from !== 'ending' ? [end] : [],
          );
          // Media ends only if PostgreSQL says that the session is over. Another gateway may have it otherwise.
          const isOver = event === 'ended' || event === 'endWritten';
          expect([did.includes('destroy'), did.includes('abandon')]).toEqual([isOver, to === 'gone' && !isOver]);
          if (to !== 'gone') continue;
          expect(session.client).toBeNull();
          expect(did.filter((one) => one.startsWith('gone'))).toEqual([`gone ${isOver ? reason : null}`]);
          expect(did.includes(isOver ? `close ${reason}` : 'drop')).toBe(hadClient && event !== 'drained');
        }
        // Ends the timer of a grace period.
        session.dispatch('notHeld');
      }),
      { numRuns: 500 },
    );
  });

  test('reports an event that cannot happen, and stays as it is', () => {
    const { session, did } = setUp(false);
    session.dispatch('graceOver');
    expect([session.state, did]).toEqual(['joining', ['unexpected graceOver']]);
  });

  test('without a connection ends after its grace period, and after an outage of PostgreSQL after a full new grace period', async () => {
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
