import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { joinSessions } from './join-sessions.js';
import type { JoinInput } from './session.js';
import { NOON, startTestRooms, type Invited, type TestRooms } from './sessions.testkit.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms({ poolMax: 12 });
});

const invite = (roomId: string, count: number): Promise<Invited[]> =>
  Promise.all(Array.from({ length: count }, () => rooms.invite(roomId)));
const join = (roomId: string, inputs: JoinInput[], rosterFullMax = 100) =>
  joinSessions(rooms.database, roomId, inputs, NOON, { pace: { intervalMs: 0, aheadMs: 0 }, rosterFullMax });
const inputsOf = (roomId: string, invited: Invited[], more: Partial<JoinInput> = {}) =>
  invited.map((one) => rooms.inputOf(roomId, one, more));
const outcomesOf = (outcomes: { outcome: string }[]) => outcomes.map(({ outcome }) => outcome);
const roomOf = (id: string) => rooms.database.prisma.room.findUniqueOrThrow({ where: { id } });
/** The number of transactions that wrote the room's sessions. */
async function transactions(roomId: string): Promise<number> {
  const [row] = await rooms.database.sql.$queryRaw<{ count: number }[]>`
    SELECT count(DISTINCT xmin::text)::int AS count FROM participant_sessions WHERE room_id = ${roomId}`;
  return row!.count;
}

describe('a batch of joins', () => {
  test('of 50 participants makes one transaction, one version, and one event each in the order of arrival', async () => {
    const roomId = await rooms.newRoom();
    const inputs = inputsOf(roomId, await invite(roomId, 50), { mediaNodeId: 'm1' });
    const outcomes = await join(roomId, inputs);
    expect(await transactions(roomId)).toBe(1);
    expect(new Set(outcomesOf(outcomes))).toEqual(new Set(['joined']));
    expect(await roomOf(roomId)).toMatchObject({ version: 1, lastSequence: 51, mediaNodeId: 'm1', mediaGeneration: 1 });
    const events = await rooms.events(roomId);
    expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 51 }, (_, n) => n + 1));
    expect(events[0]!.type).toBe('room.started');
    expect(events.slice(1).map(({ data }) => data.participant.id)).toEqual(
      inputs.map(({ participantId }) => participantId),
    );
    const { sessions } = await rooms.snapshot(roomId);
    const states = outcomes.flatMap((one) => (one.outcome === 'joined' ? [one.state] : []));
    expect(states.sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1))).toEqual(sessions);
  });

  test('refuses each join for its own reason, and gives the last places to the first ones', async () => {
    const roomId = await rooms.newRoom({ maxParticipants: 3 });
    const [here, removed, revoked, first, second, third] = await invite(roomId, 6);
    await join(roomId, inputsOf(roomId, [here!]));
    await rooms.remove(roomId, removed!.participantId);
    await rooms.sql(`UPDATE participant_tokens SET revoked_at = now() WHERE id = '${revoked!.tokenId}'`);
    const foreign = { projectId: 'proj_x', environmentId: 'env_x' };
    const outcomes = await join(roomId, [
      ...inputsOf(roomId, [removed!, revoked!]),
      rooms.inputOf(roomId, first!, { tokenId: newId('token') }),
      rooms.inputOf(roomId, second!, { tenant: foreign }),
      ...inputsOf(roomId, [third!, here!]),
      rooms.inputOf(roomId, await rooms.invite(await rooms.newRoom())),
      ...inputsOf(roomId, [await rooms.invite(roomId), await rooms.invite(roomId)]),
    ]);
    expect(outcomesOf(outcomes)).toEqual([
      'removed',
      'token_revoked',
      'not_found',
      'not_found',
      'joined',
      'joined',
      'not_found',
      'joined',
      'capacity',
    ]);
    expect((await rooms.snapshot(roomId)).sessions).toHaveLength(3);
  });

  test('with a join that fails writes nothing, so that each can be tried alone', async () => {
    const roomId = await rooms.newRoom();
    const [one, faulty] = await invite(roomId, 2);
    // The table demands 32 bytes.
    const inputs = [
      rooms.inputOf(roomId, one!),
      rooms.inputOf(roomId, faulty!, { resumeSecretHash: new Uint8Array(3) }),
    ];
    await expect(join(roomId, inputs)).rejects.toThrow('resume_secret_hash');
    expect(await rooms.events(roomId)).toEqual([]);
    expect(outcomesOf(await join(roomId, inputs.slice(0, 1)))).toEqual(['joined']);
  });

  test('writes nothing for clients that go while a transaction waits for locks or writes', async () => {
    const roomId = await rooms.newRoom();
    const invited = await invite(roomId, 5);
    // Ending a session takes a transaction.
    await join(roomId, inputsOf(roomId, [invited[4]!]));
    const goneAt = (call: number) => {
      let calls = 0;
      return { isWaiting: () => (calls += 1) < call };
    };
    const outcomes = await join(roomId, [
      rooms.inputOf(roomId, invited[0]!),
      // The first call comes before the transaction.
      rooms.inputOf(roomId, invited[1]!, goneAt(2)),
      rooms.inputOf(roomId, invited[2]!, goneAt(3)),
      rooms.inputOf(roomId, invited[3]!, { isWaiting: () => true }),
      rooms.inputOf(roomId, invited[4]!),
    ]);
    expect(outcomesOf(outcomes)).toEqual(['joined', 'abandoned', 'abandoned', 'joined', 'joined']);
    expect(await rooms.sessions(roomId)).toHaveLength(4);
    expect(await roomOf(roomId)).toMatchObject({ version: 2, lastSequence: 6 });
  });

  test('never exceeds the capacity, whatever batches of several gateways run at once', async () => {
    const roomId = await rooms.newRoom({ maxParticipants: 30 });
    const invited = await invite(roomId, 60);
    const batches = Array.from({ length: 6 }, (_, n) => invited.slice(n * 10, n * 10 + 10));
    const outcomes = (
      await Promise.all(
        batches.map((batch, n) =>
          join(
            roomId,
            inputsOf(
              roomId,
              [...batch].sort(() => (n % 2) - 0.5),
            ),
          ),
        ),
      )
    ).flat();
    expect(outcomes.filter(({ outcome }) => outcome === 'joined')).toHaveLength(30);
    expect(outcomes.filter(({ outcome }) => outcome === 'capacity')).toHaveLength(30);
    expect((await rooms.snapshot(roomId)).sessions).toHaveLength(30);
    const events = await rooms.events(roomId);
    expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 31 }, (_, n) => n + 1));
    expect(events.filter(({ type }) => type === 'room.started')).toHaveLength(1);
  });

  test('makes a room paged above the limit until it is empty', async () => {
    const roomId = await rooms.newRoom();
    const [a, b, c] = await invite(roomId, 3);
    expect(outcomesOf(await join(roomId, inputsOf(roomId, [a!, b!]), 2))).toEqual(['joined', 'joined']);
    expect(await roomOf(roomId)).toMatchObject({ rosterPaged: false });
    expect(outcomesOf(await join(roomId, inputsOf(roomId, [c!]), 2))).toEqual(['joined']);
    expect(await roomOf(roomId)).toMatchObject({ rosterPaged: true });
    await rooms.sql(
      `UPDATE participant_sessions SET ended_at = now(), end_reason = 'left' WHERE room_id = '${roomId}'`,
    );
    expect(outcomesOf(await join(roomId, inputsOf(roomId, [a!]), 2))).toEqual(['joined']);
    expect(await roomOf(roomId)).toMatchObject({ rosterPaged: false });
  });
});
