import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { PERMISSIONS, presentLiveParticipant } from '@callplane/core';
import { endOne, moveOne, resumeOne } from '@callplane/testing';
import type { TypedSql } from '../client/database.js';
import { updateParticipant } from '../participants/moderation.js';
import { findParticipants } from '../participants/participants.repository.js';
import { findMovedSession, markDisconnected } from '../sessions/session-connection.js';
import { publishTracks } from '../sessions/session-tracks.js';
import { hashOf, NOON, startTestRooms, track, type TestRooms } from '../sessions/sessions.testkit.js';
import { checkInvariants } from '../invariants/invariants.js';
import { claimOperation } from './operation-leases.js';
import { acceptParticipantMove, moveParticipant } from './participant-move.js';

let rooms: TestRooms;
let from: string;
let to: string;
beforeAll(async () => {
  rooms = await startTestRooms();
});
beforeEach(async () => {
  [from, to] = [await rooms.newRoom(), await rooms.newRoom()];
});

const LATER = new Date(NOON.getTime() + 60_000);
type Entered = Awaited<ReturnType<TestRooms['enter']>>;
const enter = (roomId = from) => rooms.enter(roomId, { permissions: [...PERMISSIONS] });
const accept = (participantId: string, target = to, tenant = rooms.tenant) =>
  acceptParticipantMove(rooms.database, tenant, from, participantId, { roomId: target, permissions: null }, LATER);
const move = (participantId: string, [source, target] = [from, to], permissions: 'room:join'[] | null = null) =>
  moveOne(rooms.database, rooms.tenant, { roomId: source, participantId }, { roomId: target, permissions }, LATER);
/** The rooms of the live sessions that have this resume secret: of one person, in whichever room it is. */
async function roomsOf({ secret }: Pick<Entered, 'secret'>): Promise<string[]> {
  const resumeSecretHash = Buffer.from(hashOf(secret));
  const where = { resumeSecretHash, endedAt: null };
  return (await rooms.database.prisma.participantSession.findMany({ where })).map(({ roomId }) => roomId);
}
/** The operation of an accepted move, claimed as a worker does. */
async function claimed(participantId: string) {
  const accepted = await accept(participantId);
  if ('refused' in accepted) throw new Error(accepted.refused);
  const claim = await claimOperation(rooms.database.sql, accepted.operation.id, randomUUID(), 60_000);
  return { ...claim!, participantId };
}

describe('a move', () => {
  test('ends the session, and begins one in the target for a new participant with the same data', async () => {
    const ada = await enter();
    const { participantId } = ada;
    const patch = { name: 'Ada', externalId: 'user-1', role: 'host', metadata: { seat: 1 } };
    await updateParticipant(rooms.database, rooms.tenant, from, participantId, patch, NOON);
    await publishTracks(rooms.database, ada.held, [track('mic')], NOON);
    await move(participantId);

    const [session] = (await rooms.snapshot(to)).sessions;
    expect(session).toMatchObject({ participant: { ...patch, roomId: to }, permissions: PERMISSIONS, tracks: [] });
    const { sessionId, participant } = session!;
    const left = { ...patch, id: participantId };
    expect((await rooms.events(from)).slice(-2)).toMatchObject([
      { type: 'track.unpublished', data: { participant: left, track: { trackId: 'mic' } } },
      {
        type: 'participant.left',
        data: { participant: left, reason: 'moved', movedTo: { roomId: to, participantId: participant.id, sessionId } },
      },
    ]);
    expect(await rooms.events(to)).toMatchObject([
      { type: 'room.started' },
      {
        type: 'participant.joined',
        data: {
          sessionId,
          participant: { ...patch, id: participant.id, roomId: to },
          movedFrom: { roomId: from, participantId, sessionId: ada.sessionId },
        },
      },
    ]);
    const { environmentId } = rooms.tenant;
    const shown = await findParticipants(rooms.database.sql, [
      { tenant: rooms.tenant, roomId: from, id: participantId },
      { tenant: rooms.tenant, roomId: to, id: participant.id },
    ]);
    expect(environmentId).toBe(rooms.tenant.environmentId);
    expect(shown.map((one) => presentLiveParticipant(one!, LATER))).toMatchObject([
      { state: 'moved', leftAt: LATER.toISOString(), movedTo: { roomId: to, participantId: participant.id } },
      { state: 'disconnected', leftAt: null, movedFrom: { roomId: from, participantId } },
    ]);
    expect((await rooms.snapshot(from)).sessions).toEqual([]);
  });

  test('lets the client resume with the secret that it has, and nobody with another one', async () => {
    const ada = await enter();
    await move(ada.participantId);
    const old = { sessionId: ada.sessionId, instanceId: 'instance-2' };
    const resumed = await resumeOne(rooms.database, { ...old, resumeSecretHash: hashOf(ada.secret) });
    expect(resumed).toEqual({ outcome: 'ended', reason: 'moved' });
    const found = await findMovedSession(rooms.database.sql, { ...old, resumeSecretHash: hashOf(ada.secret) });
    expect(found).toMatchObject({ roomId: to });
    expect(await findMovedSession(rooms.database.sql, { ...old, resumeSecretHash: hashOf('other') })).toBeNull();
    const inTarget = { ...found!, instanceId: 'instance-2', resumeSecretHash: hashOf(ada.secret) };
    expect(await resumeOne(rooms.database, inTarget)).toMatchObject({ outcome: 'resumed', roomId: to, media: null });
  });

  test('is followed through several rooms, and back to the first one', async () => {
    const ada = await enter();
    await move(ada.participantId);
    const inTarget = (await rooms.snapshot(to)).sessions[0]!.participant.id;
    await move(inTarget, [to, from]);
    const [back] = (await rooms.snapshot(from)).sessions;
    const resumeSecretHash = hashOf(ada.secret);
    const found = await findMovedSession(rooms.database.sql, { sessionId: ada.sessionId, resumeSecretHash });
    expect(found).toEqual({ roomId: from, sessionId: back!.sessionId });
    expect(back!.participant.id).not.toBe(ada.participantId);
    expect(await roomsOf(ada)).toEqual([from]);
  });

  test('prevents that the participant joins again: its tokens are revoked, and it gets no others', async () => {
    const ada = await enter();
    await move(ada.participantId);
    expect(await rooms.join(from, ada)).toEqual({ outcome: 'token_revoked' });
    const patched = await updateParticipant(rooms.database, rooms.tenant, from, ada.participantId, {}, LATER);
    expect(patched).toEqual({ outcome: 'moved' });
  });

  test('gives the participant other permissions if the request has some', async () => {
    const ada = await enter();
    await move(ada.participantId, [from, to], ['room:join']);
    expect((await rooms.snapshot(to)).sessions).toMatchObject([{ permissions: ['room:join'] }]);
  });

  test('leaves a session in its grace period as long as it had', async () => {
    const ada = await enter();
    await markDisconnected(rooms.database, [ada.held]);
    const lostAt = (await rooms.snapshot(from)).sessions[0]!.disconnectedAt;
    await delay(5);
    await move(ada.participantId);
    expect((await rooms.snapshot(to)).sessions[0]!.disconnectedAt).toEqual(lostAt);
  });

  test('is refused without writing anything', async () => {
    const [ada, ended, full, encrypted] = [
      await enter(),
      await rooms.newRoom(),
      await rooms.newRoom({ maxParticipants: 1 }),
      await rooms.newRoom({ encryption: 'required' }),
    ];
    await rooms.end(ended);
    await enter(full);
    const gone = await enter();
    await endOne(rooms.database, gone.held, 'left', NOON);
    const removed = await enter();
    await rooms.remove(from, removed.participantId);
    const stranger = { ...rooms.tenant, environmentId: 'env_other' };
    const { participantId } = ada;
    expect(await accept(participantId, 'room_x')).toEqual({ refused: 'target_not_found' });
    expect(await accept(participantId, to, stranger)).toEqual({ refused: 'not_found' });
    expect(await accept(participantId, ended)).toEqual({ refused: 'target_ended' });
    expect(await accept(participantId, full)).toEqual({ refused: 'ROOM_FULL' });
    expect(await accept(participantId, encrypted)).toEqual({ refused: 'ENCRYPTION_DIFFERS' });
    expect(await accept(gone.participantId)).toEqual({ refused: 'PARTICIPANT_NOT_CONNECTED' });
    expect(await accept((await rooms.invite(from)).participantId)).toEqual({ refused: 'PARTICIPANT_NOT_CONNECTED' });
    expect(await accept(removed.participantId)).toEqual({ refused: 'removed' });
    await rooms.end(from);
    expect(await accept(participantId)).toEqual({ refused: 'room_ended' });
    expect(
      await rooms.database.prisma.runtimeOperation.count({ where: { roomId: from, kind: 'participant.move' } }),
    ).toBe(0);
  });

  test('that is requested again stays as it is for the same target, and is refused for another one', async () => {
    const { participantId } = await enter();
    const first = await accept(participantId);
    expect(await accept(participantId)).toMatchObject({ operation: { id: (first as any).operation.id }, wake: null });
    expect(await accept(participantId, await rooms.newRoom())).toEqual({ refused: 'moved' });
  });

  test('fails at once if its room has filled or ended, or the participant has left, and leaves it where it was', async () => {
    const small = await rooms.newRoom({ maxParticipants: 1 });
    to = small;
    const [ada, bob] = [await enter(), await enter()];
    const [first, second] = [await claimed(ada.participantId), await claimed(bob.participantId)];
    const work = (claim: typeof first) => rooms.database.transaction((tx) => moveParticipant(tx, claim, 100, LATER));
    await work(first);
    await expect(work(second)).rejects.toMatchObject({ name: 'OperationRefused', code: 'ROOM_FULL' });
    expect([await roomsOf(ada), await roomsOf(bob)]).toEqual([[small], [from]]);
    await rooms.end(small);
    await expect(work(second)).rejects.toMatchObject({ code: 'ROOM_ENDED' });
    await endOne(rooms.database, bob.held, 'left', NOON);
    await expect(work(second)).rejects.toMatchObject({ code: 'PARTICIPANT_NOT_CONNECTED' });
  });

  test('keeps the person in exactly one of the rooms, whichever statement fails', async () => {
    const ada = await enter();
    const claim = await claimed(ada.participantId);
    /** Runs the move until this many statements are over. @returns whether it was complete */
    const run = (statements: number): Promise<boolean> => {
      let left = statements;
      const count = <Name extends '$queryRaw' | '$executeRaw'>(tx: TypedSql, name: Name) =>
        ((parts: TemplateStringsArray, ...values: unknown[]) => {
          left -= 1;
          if (left < 0) throw new Error('killed');
          return tx[name](parts, ...values);
        }) as TypedSql[Name];
      return rooms.database
        .transaction(async (tx) => {
          const failing = { $queryRaw: count(tx, '$queryRaw'), $executeRaw: count(tx, '$executeRaw') };
          await moveParticipant(failing, claim, 100, LATER);
          return true;
        })
        .catch((error: unknown) => {
          if ((error as Error).message !== 'killed') throw error;
          return false;
        });
    };
    let statements = 0;
    while (!(await run(statements))) {
      expect([statements, await roomsOf(ada)]).toEqual([statements, [from]]);
      statements += 1;
    }
    expect(statements).toBeGreaterThan(8);
    expect(await roomsOf(ada)).toEqual([to]);
    // A worker that was killed after the commit: the next attempt changes nothing.
    expect(await rooms.database.transaction((tx) => moveParticipant(tx, claim, 100, LATER))).toBeNull();
    expect(await roomsOf(ada)).toEqual([to]);
  });

  test('of many people between two rooms in both directions loses and doubles nobody', async () => {
    const people = await Promise.all(Array.from({ length: 12 }, (_, n) => enter(n % 2 === 0 ? from : to)));
    await Promise.all(people.map(({ participantId }, n) => move(participantId, n % 2 === 0 ? [from, to] : [to, from])));
    const found = await Promise.all(people.map(roomsOf));
    expect(found).toEqual(people.map((_, n) => [n % 2 === 0 ? to : from]));
    const broken = (await checkInvariants(rooms.database, 1000)).filter((result) => result.broken > 0);
    expect(broken).toEqual([]);
  });
});
