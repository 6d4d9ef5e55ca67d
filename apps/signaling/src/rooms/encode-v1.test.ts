import { expect, test } from '@jest/globals';
import type { SessionState, TrackState } from '@callplane/db';
import type { RemoteParticipant } from '@callplane/protocol';
import fc from 'fast-check';
import { encodeV1, type MessageV1 } from './encode-v1.js';
import { presentSession, type RoomChange, type SessionEntry } from './room-change.js';

const trackOf = (id: number): fc.Arbitrary<TrackState> =>
  fc.record({
    trackId: fc.constant(`t${id}`),
    kind: fc.constantFrom('audio' as const, 'video' as const),
    source: fc.constantFrom('microphone' as const, 'camera' as const, 'screen' as const),
    muted: fc.boolean(),
    feedId: fc.constantFrom('f1', 'f2'),
    mid: fc.constantFrom('0', '1'),
  });

/** A participant has one session in a room. Another session may have replaced an earlier one. */
const sessionOf = (id: number): fc.Arbitrary<SessionState> =>
  fc
    .record({
      session: fc.constantFrom(1, 2),
      name: fc.constantFrom('Ada', 'Bob'),
      metadata: fc.constantFrom({}, { a: 1 }, { a: [2] }),
      disconnectedAt: fc.constantFrom(null, new Date(5)),
      tracks: fc.tuple(...[1, 2, 3].map((track) => fc.option(trackOf(track)))),
      connection: fc.constantFrom(1, 2),
    })
    .map(({ session, name, metadata, disconnectedAt, tracks, connection }) => ({
      sessionId: `s${id}-${session}`,
      version: 0,
      participant: {
        id: `p${id}`,
        roomId: 'r',
        externalId: null,
        name,
        metadata,
        role: 'participant',
        createdAt: new Date(0),
        connectedAt: new Date(1),
        leftAt: null,
        tokenExpiresAt: new Date(9),
      },
      startedAt: new Date(session),
      permissions: [],
      instanceId: 'i',
      connection,
      disconnectedAt,
      tracks: tracks.filter((track) => track !== null),
    }));

const room = fc
  .tuple(...[1, 2, 3, 4].map((id) => fc.option(sessionOf(id))))
  .map((sessions) => ({ sessions: sessions.filter((session) => session !== null) }));

const entryOf = (state: SessionState): SessionEntry => {
  const { sessionId, connection, instanceId, version, participant } = state;
  return { sessionId, participantId: participant.id, connection, instanceId, version, state };
};
type Room = { sessions: SessionState[] };
function diffRoom(before: Room, after: Room): MessageV1[] {
  const ids = new Set([...before.sessions, ...after.sessions].map(({ sessionId }) => sessionId));
  const find = ({ sessions }: Room, id: string) => {
    const state = sessions.find(({ sessionId }) => sessionId === id);
    return state === undefined ? null : entryOf(state);
  };
  return encodeV1([...ids].map((id): RoomChange => ({ before: find(before, id), after: find(after, id), gone: null })));
}

const known = ({ sessions }: { sessions: SessionState[] }) =>
  new Map(sessions.map((session) => [session.participant.id, presentSession(session)]));

/** Applies a change as a client does. */
function apply(state: Map<string, RemoteParticipant>, { message }: MessageV1): void {
  switch (message.type) {
    case 'participantLeft':
      expect(state.get(message.participantId)?.sessionId).toBe(message.sessionId);
      state.delete(message.participantId);
      return;
    case 'participantJoined':
      expect(state.has(message.participant.participantId)).toBe(false);
      state.set(message.participant.participantId, message.participant);
      return;
    case 'participantUpdated':
      expect(state.has(message.participant.participantId)).toBe(true);
      state.set(message.participant.participantId, message.participant);
      return;
    default: {
      const participant = state.get(message.participantId)!;
      const trackId = message.type === 'trackUnpublished' ? message.trackId : message.track.trackId;
      const others = participant.tracks.filter((track) => track.trackId !== trackId);
      expect(others.length === participant.tracks.length).toBe(message.type === 'trackPublished');
      const tracks = message.type === 'trackUnpublished' ? others : [...others, message.track];
      state.set(participant.participantId, { ...participant, tracks });
    }
  }
}

const inOrder = (state: Map<string, RemoteParticipant>) =>
  [...state.values()]
    .map((participant) => ({
      ...participant,
      tracks: [...participant.tracks].sort((a, b) => a.trackId.localeCompare(b.trackId)),
    }))
    .sort((a, b) => a.participantId.localeCompare(b.participantId));

test('the messages about changes, applied one by one, lead from any state to any other', () => {
  fc.assert(
    fc.property(room, room, (before, after) => {
      const state = known(before);
      for (const change of diffRoom(before, after)) apply(state, change);
      expect(inOrder(state)).toEqual(inOrder(known(after)));
    }),
    { numRuns: 1000 },
  );
});

test('there are no messages if nothing visible has changed', () => {
  fc.assert(
    fc.property(room, (state) => {
      const moved = state.sessions.map((session) => ({
        ...session,
        connection: session.connection + 1,
        instanceId: 'elsewhere',
        tracks: session.tracks.map((track) => ({ ...track, feedId: 'another', mid: '9' })),
      }));
      expect(diffRoom(state, { sessions: moved })).toEqual([]);
    }),
  );
});

test('all departures come before the first arrival, so that a returning participant leaves first', () => {
  fc.assert(
    fc.property(room, room, (before, after) => {
      const types = diffRoom(before, after).map(({ message }) => message.type);
      expect(types.lastIndexOf('participantLeft')).toBeLessThan(
        types.includes('participantJoined') ? types.indexOf('participantJoined') : Infinity,
      );
    }),
  );
});
