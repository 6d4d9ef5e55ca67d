import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { RoomState } from './state.js';
import { FakeRoom, type FakeSession } from './rooms.testkit.js';

/** Everything that others can see of a room, without derived values. */
const seen = (state: RoomState) => ({
  info: state.info,
  entries: [...state.entries.values()].sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1)),
});
function fresh(room: FakeRoom): RoomState {
  const state = new RoomState('here');
  state.apply(room.read(null));
  return state;
}

describe('the state of a room', () => {
  test('takes over a complete read with a version below the known one from a restored database', () => {
    const [room, restored] = [new FakeRoom(), new FakeRoom()];
    for (const sessionId of ['s1', 's2', 's3']) room.set({ sessionId });
    restored.set({ sessionId: 's1' });
    const state = fresh(room);
    state.apply(restored.read(3), 3);
    expect(seen(state)).toEqual(seen(fresh(restored)));
  });

  test('takes over changes of sessions with the same version from a complete read, as after a restore', () => {
    const room = new FakeRoom();
    room.set({ sessionId: 's1' });
    room.set({ sessionId: 's2' });
    const state = fresh(room);
    room.sessions.get('s1')!.metadata = { seat: 1 };
    room.sessions.get('s2')!.gone = 'left';
    expect(state.apply(room.read(2)).changes).toEqual([]);
    expect(state.apply(room.read(null)).changes).toHaveLength(2);
    expect(seen(state)).toEqual(seen(fresh(room)));
  });
});

const sessionId = fc.constantFrom('s1', 's2', 's3');
const gateway = fc.nat({ max: 1 });
const write = fc.record({
  kind: fc.constant('write' as const),
  gateway,
  sessionId,
  what: fc.constantFrom<Partial<FakeSession>>(
    { gone: 'left' },
    { metadata: { seat: 1 } },
    { metadata: {} },
    { tracks: ['a'] },
    { tracks: [] },
  ),
  isPaged: fc.boolean(),
});
const step = fc.oneof(
  { weight: 4, arbitrary: write },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('read' as const, 'read completely' as const),
      gateway,
      which: fc.constant(0),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('deliver' as const, 'lose' as const, 'repeat' as const),
      gateway,
      which: fc.nat({ max: 3 }),
    }),
  },
);

test('lost, repeated and reordered notices lead to the same room as a complete read', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const room = new FakeRoom();
      const states = [fresh(room), fresh(room)];
      const notices: number[][] = [[], []];
      const read = (at: number, complete = false) => {
        const state = states[at]!;
        const known = state.info?.version ?? null;
        const changes = room.read(complete ? null : known);
        state.apply(changes, known);
        return changes;
      };
      const receive = (at: number, version: number) => {
        if (version > (states[at]!.info?.version ?? -1)) read(at);
      };
      for (const one of steps) {
        if (one.kind === 'write') {
          if (room.sessions.get(one.sessionId)?.gone === 'left') continue;
          // A room begins and ends to be paged only as the writers of the database let it.
          if (one.isPaged) room.rosterPaged = true;
          else if ([...room.sessions.values()].every(({ gone }) => gone !== null)) room.rosterPaged = false;
          room.set({ sessionId: one.sessionId, ...one.what });
          notices[1 - one.gateway]!.push(read(one.gateway).version);
        } else if (one.kind === 'read' || one.kind === 'read completely') read(one.gateway, one.kind !== 'read');
        else {
          const queue = notices[one.gateway]!;
          const at = one.which % Math.max(1, queue.length);
          const notice = queue[at];
          if (notice === undefined) continue;
          if (one.kind !== 'repeat') queue.splice(at, 1);
          if (one.kind !== 'lose') receive(one.gateway, notice);
        }
        // A gateway that is behind shows an earlier room; one that is at the newest version shows the room.
        for (const state of states) {
          if (state.info?.version === room.version) expect(seen(state)).toEqual(seen(fresh(room)));
        }
      }
      for (const [at, state] of states.entries()) {
        read(at);
        expect(seen(state)).toEqual(seen(fresh(room)));
      }
    }),
    { numRuns: 1000 },
  );
});
