import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import type { AcceptedOperation, TypedSql } from '@callplane/db';
import { eventually, inviteTestParticipant } from '@callplane/testing';
import { after, before, NOON, startTestWorker, type TestWorker, workOnOperation } from '../worker.testkit.js';

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});
beforeEach(() => worker.clock.set(NOON));

const leftAt = async (participantId: string) =>
  (await worker.deps.database.prisma.participant.findUniqueOrThrow({ where: { id: participantId } })).leftAt;
const sessionOf = (participantId: string) =>
  worker.deps.database.prisma.participantSession.findFirstOrThrow({ where: { participantId } });
const roomOf = (id: string) => worker.deps.database.prisma.room.findUniqueOrThrow({ where: { id } });
/** The number of PostgreSQL sessions that wait for a lock of another transaction. */
const waitingOnLocks = async () => {
  const [row] = await worker.deps.database.sql.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return row?.count ?? 0;
};

const issueToken = (db: TypedSql, roomId: string, participantId: string) =>
  inviteTestParticipant(db, worker.tenant, roomId, before(1), participantId).then(({ roomStatus }) => roomStatus);

describe('room.end', () => {
  test('ends every session, records when each participant left, and ends the room', async () => {
    const roomId = await worker.newRoom();
    const here = await worker.newParticipant(roomId, { connectedAt: before(30), inSession: true });
    const gone = await worker.newParticipant(roomId, { connectedAt: before(50), leftAt: before(40) });
    const invited = await worker.newParticipant(roomId, { tokenExpiresAt: after(300) });
    const expired = await worker.newParticipant(roomId, { tokenExpiresAt: before(10) });
    const elsewhere = await worker.newParticipant(await worker.newRoom(), { connectedAt: before(30), inSession: true });
    const { operation } = await worker.endRoom(roomId);
    expect(await roomOf(roomId)).toMatchObject({ status: 'ending', endedAt: null });
    worker.clock.advance(2000);

    await workOnOperation(worker.deps, operation.id);

    expect(await sessionOf(here)).toMatchObject({ endedAt: after(2), endReason: 'room_ended' });
    expect(await leftAt(here)).toEqual(after(2));
    expect(await leftAt(gone)).toEqual(before(40));
    expect(await leftAt(invited)).toEqual(after(2));
    expect(await leftAt(expired)).toEqual(before(10));
    expect(await roomOf(roomId)).toMatchObject({ status: 'ended', endedAt: after(2) });
    expect(await sessionOf(elsewhere)).toMatchObject({ endedAt: null });
    expect(await leftAt(elsewhere)).toBeNull();
  });

  test('ends a room of 5,000 participants in batches, so that no transaction holds locks for long', async () => {
    const roomId = await worker.newRoom();
    await worker.sql(`
      INSERT INTO participants
        (id, environment_id, room_id, name, metadata, role, created_at, token_expires_at, connected_at)
      SELECT 'part_many' || n, '${worker.tenant.environmentId}', '${roomId}', 'Ada', '{}', 'participant',
        '${before(60).toISOString()}', '${after(600).toISOString()}', '${before(30).toISOString()}'
      FROM generate_series(1, 5000) n`);
    await worker.sql(`
      INSERT INTO participant_sessions (id, environment_id, room_id, participant_id, started_at)
      SELECT 'sess' || substr(id, 5), environment_id, room_id, id, connected_at FROM participants
      WHERE room_id = '${roomId}'`);
    const id = await worker.workOn(worker.endRoom(roomId));

    expect(await worker.row(id)).toMatchObject({ status: 'completed', attempts: 1 });
    const { prisma, sql } = worker.deps.database;
    expect(await prisma.participant.count({ where: { roomId, leftAt: NOON } })).toBe(5000);
    expect(await prisma.participantSession.count({ where: { roomId, endReason: 'room_ended' } })).toBe(5000);
    const batches = await sql.$queryRaw<{ rows: number }[]>`
      SELECT count(*)::int AS rows FROM participants WHERE room_id = ${roomId} GROUP BY xmin::text`;
    expect(batches.length).toBeGreaterThanOrEqual(3);
    expect(Math.max(...batches.map(({ rows }) => rows))).toBeLessThanOrEqual(2000);
  });

  test('does not deadlock with the removal of one of its participants', async () => {
    const roomId = await worker.newRoom();
    const participantId = await worker.newParticipant(roomId, { connectedAt: before(30), inSession: true });
    const removal = (await worker.removeParticipant(roomId, participantId)).operation.id;
    const end = (await worker.endRoom(roomId)).operation.id;
    const both: Promise<unknown>[] = [];
    await worker.deps.database.transaction(async (tx) => {
      await tx.$queryRaw`SELECT 1 FROM participant_sessions WHERE participant_id = ${participantId} FOR UPDATE`;
      both.push(workOnOperation(worker.deps, removal));
      await eventually(async () => (await waitingOnLocks()) === 1);
      both.push(workOnOperation(worker.deps, end));
      await eventually(async () => (await waitingOnLocks()) === 2);
    });
    await Promise.all(both);
    for (const id of [removal, end]) expect(await worker.row(id)).toMatchObject({ status: 'completed', attempts: 1 });
    // Both wait for the session: the removal to give it a version, and the end to end it.
    expect(['removed', 'room_ended']).toContain((await sessionOf(participantId)).endReason);
  });

  test('includes a participant whose token was being issued when the end was accepted', async () => {
    const roomId = await worker.newRoom();
    const late = newId('participant');
    const { database } = worker.deps;
    let ending: Promise<AcceptedOperation> | undefined;
    await database.transaction(async (tx) => {
      expect(await issueToken(tx, roomId, late)).toBe('active');
      ending = worker.endRoom(roomId);
      await eventually(async () => (await waitingOnLocks()) === 1);
    });
    const { operation } = await ending!;
    await workOnOperation(worker.deps, operation.id);
    expect(await leftAt(late)).toEqual(NOON);
  });

  test('prevents new tokens as soon as the end is accepted', async () => {
    const roomId = await worker.newRoom();
    const { database } = worker.deps;
    let issued: Promise<string | null> | undefined;
    await database.transaction(async (tx) => {
      // Takes the row lock that the accepting statement holds until its commit.
      await tx.$executeRaw`UPDATE rooms SET status = 'ending' WHERE id = ${roomId}`;
      issued = issueToken(database.sql, roomId, newId('participant'));
      await eventually(async () => (await waitingOnLocks()) === 1);
    });
    expect(await issued!).toBe('ending');
    expect(await database.prisma.participant.count({ where: { roomId } })).toBe(0);
  });
});

describe('participant.remove', () => {
  test('ends the session of a joined participant and leaves other sessions alone', async () => {
    const roomId = await worker.newRoom();
    const participantId = await worker.newParticipant(roomId, { connectedAt: before(30), inSession: true });
    const other = await worker.newParticipant(roomId, { connectedAt: before(30), inSession: true });
    const id = await worker.workOn(worker.removeParticipant(roomId, participantId));
    expect(await worker.row(id)).toMatchObject({ status: 'completed', attempts: 1, lastError: null });
    expect(await sessionOf(participantId)).toMatchObject({ endedAt: NOON, endReason: 'removed' });
    expect(await leftAt(participantId)).toEqual(NOON);
    expect(await sessionOf(other)).toMatchObject({ endedAt: null });
    expect(await leftAt(other)).toBeNull();
    expect(await roomOf(roomId)).toMatchObject({ status: 'active' });
  });
});

describe('participant.move', () => {
  test('continues the session in the target, and tells both rooms', async () => {
    const [roomId, to] = [await worker.newRoom(), await worker.newRoom('created')];
    const ada = await worker.enter(roomId);
    const id = await worker.workOn(worker.moveParticipant(roomId, ada.participantId, to));
    expect(await worker.row(id)).toMatchObject({ status: 'completed', attempts: 1, lastError: null });
    expect(await sessionOf(ada.participantId)).toMatchObject({ endedAt: NOON, endReason: 'moved' });
    const moved = await worker.deps.database.prisma.participant.findFirstOrThrow({ where: { roomId: to } });
    expect(moved).toMatchObject({ movedFromId: ada.participantId, leftAt: null, connectedAt: NOON });
    expect(await sessionOf(moved.id)).toMatchObject({ endedAt: null, instanceId: null });
    expect((await worker.events(roomId)).slice(-2)).toEqual(['track.unpublished', 'participant.left moved']);
    expect(await worker.events(to)).toEqual(['room.started', 'participant.joined']);
  });

  test('that is refused fails at once, with its reason in the operation and in the event', async () => {
    const [roomId, to] = [await worker.newRoom(), await worker.newRoom()];
    const ada = await worker.enter(roomId);
    const accepted = await worker.moveParticipant(roomId, ada.participantId, to);
    await worker.endRoom(to);
    const { id } = accepted.operation;
    expect(await workOnOperation(worker.deps, id)).toBeNull();
    const lastError = { code: 'ROOM_ENDED', message: 'The room is ending or has ended.' };
    expect(await worker.row(id)).toMatchObject({ status: 'failed', attempts: 1, lastError });
    expect(await sessionOf(ada.participantId)).toMatchObject({ endedAt: null });
    expect((await worker.events(roomId)).at(-1)).toBe('operation.failed');
    // Another request is a new run, also with another target.
    const other = await worker.newRoom();
    const again = await worker.workOn(worker.moveParticipant(roomId, ada.participantId, other));
    expect([again, await worker.row(id)]).toMatchObject([id, { status: 'completed', run: 2, attempts: 2 }]);
    expect(await worker.events(other)).toEqual(['participant.joined']);
  });
});
