import { describe, expect, test } from '@jest/globals';
import type { HeldSession } from '@callplane/db';
import type { Rooms } from '../rooms/rooms.js';
import { RoomWrites } from './room-writes.js';

interface Change {
  held: HeldSession;
  muted: boolean;
}

function setUp() {
  const written: [roomId: string, sessions: string[]][] = [];
  const changed: string[] = [];
  const rooms = { changed: (roomId: string) => Promise.resolve(changed.push(roomId)) } as unknown as Rooms;
  const batches: [name: string, size: number][] = [];
  const writes = new RoomWrites<Change>(
    'mutes',
    (roomId, changes) => {
      written.push([roomId, changes.map(({ held }) => held.sessionId)]);
      return Promise.resolve(changes.map(({ held }) => held.connection === 1));
    },
    { metrics: { batch: (name, size) => batches.push([name, size]) } },
    rooms,
  );
  const change = (n: number, connection = 1): Change => ({ held: { sessionId: `sess_${n}`, connection }, muted: true });
  return { writes, written, changed, batches, change };
}

describe('the writes of a room', () => {
  test('of one event-loop tick share one transaction and one read of the room', async () => {
    const { writes, written, changed, batches, change } = setUp();
    const sessions = Array.from({ length: 20 }, (_, n) => n);
    await Promise.all([...sessions.map((n) => writes.write('room_1', change(n))), writes.write('room_2', change(99))]);
    expect(written).toEqual([
      ['room_1', sessions.map((n) => `sess_${n}`)],
      ['room_2', ['sess_99']],
    ]);
    expect(changed).toEqual(['room_1', 'room_2']);
    expect(batches).toEqual([
      ['mutes', 20],
      ['mutes', 1],
    ]);
  });

  test('have a result each: a session that another connection holds is not written', async () => {
    const { writes, change } = setUp();
    expect(await Promise.all([writes.write('room_1', change(1)), writes.write('room_1', change(2, 7))])).toEqual([
      true,
      false,
    ]);
  });
});
