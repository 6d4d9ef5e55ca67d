import { recordingFileKey, newId } from '@callplane/core';
import { completeErasures, purgeExpiredRooms, requestErasure } from '@callplane/db';
import { workOnOperation } from '@callplane/operations';
import { eventually, participantRow, sessionRow } from '@callplane/testing';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { deleteOld } from './housekeeping.js';
import {
  beganAtMs,
  deps,
  files,
  kinds,
  recordingId,
  roomId,
  row,
  store,
  tenant,
} from './operations/recorder.testkit.js';

describe('the housekeeping', () => {
  const now = () => new Date();
  let ids: Record<'erased' | 'other', string>;
  /** Two participants were in the room during the whole recording. */
  beforeEach(async () => {
    const { prisma } = deps.database;
    const made = await Promise.all(
      ['Ada', 'Bob'].map(async (name) => {
        const { id } = await prisma.participant.create({ data: participantRow(tenant, roomId, { name }) });
        const of = { roomId, participantId: id };
        const times = { startedAt: new Date(beganAtMs), endedAt: now(), endReason: 'left' };
        await prisma.participantSession.create({ data: sessionRow(tenant, of, times) });
        return id;
      }),
    );
    ids = { erased: made[0]!, other: made[1]! };
  });

  const fileOf = (participantId: string) => ({ id: newId('recordingFile'), participantId, contentType: 'audio/webm' });
  const settle = (more: object) =>
    deps.database.prisma.recording.update({
      where: { id: recordingId },
      data: { status: 'completed', completedAt: now(), ...more },
    });
  const erase = () => requestErasure(deps.database, ids.erased, now());
  const deletions = () =>
    deps.database.prisma.runtimeOperation.count({ where: { subjectId: recordingId, kind: 'recording.delete' } });
  const isErased = async () => {
    const { prisma } = deps.database;
    await prisma.participantErasure.updateMany({ data: { requestedAt: new Date(Date.now() - 7_200_000) } });
    await completeErasures(deps.database);
    return (await prisma.participantErasure.count({ where: { participantId: ids.erased } })) === 0;
  };

  test('deletes the tracks of an erased participant, and no others', async () => {
    const [gone, kept] = [fileOf(ids.erased), fileOf(ids.other)];
    for (const file of [gone, kept]) await store.put(recordingFileKey(recordingId, file), Buffer.from('x'));
    await settle({ files: [gone, kept] });
    expect(await erase()).toMatchObject({ recordings: [], later: [], files: [{ recordingId, file: { id: gone.id } }] });
    expect(await isErased()).toBe(false);
    await deleteOld(deps, 0);
    expect(await files()).toEqual([kept]);
    const sizes = await Promise.all([gone, kept].map((file) => store.size(recordingFileKey(recordingId, file))));
    expect(sizes).toEqual([null, 1]);
    expect([await deletions(), await isErased()]).toEqual([0, true]);
  });

  test.each([
    ['a composite that shows an erased participant', () => ({ mode: 'composite' })],
    ['a recording of an erased participant alone', () => ({ participantId: ids.erased })],
    ['a failed recording, which keeps raw captures', () => ({ status: 'failed', completedAt: null })],
  ])('deletes %s', async (_name, more) => {
    await settle(more());
    expect(await erase()).toMatchObject({ recordings: [recordingId], files: [], operations: [{}] });
    expect([(await row()).deletedAt, await deletions()]).toEqual([expect.any(Date), 1]);
  });

  test('keeps a composite during which the erased participant was not there', async () => {
    await settle({ mode: 'composite' });
    await deps.database.prisma.participantSession.updateMany({
      where: { participantId: ids.erased },
      data: { startedAt: new Date(beganAtMs - 2000), endedAt: new Date(beganAtMs - 1000) },
    });
    expect(await erase()).toMatchObject({ recordings: [], files: [], later: [] });
    await deleteOld(deps, 0);
    expect([(await row()).deletedAt, await isErased()]).toEqual([null, true]);
  });

  test('erases from a recording that has not ended once it has', async () => {
    expect(await erase()).toMatchObject({ recordings: [], files: [], later: [recordingId] });
    await deleteOld(deps, 0);
    expect([await deletions(), await isErased()]).toEqual([0, false]);
    await settle({ mode: 'composite' });
    await deleteOld(deps, 0);
    expect([await deletions(), await isErased()]).toEqual([1, true]);
  });

  test('deletes a recording after the days of its retention, and its room with the next purge', async () => {
    const { prisma } = deps.database;
    const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);
    await settle({ endedAt: daysAgo(40) });
    await prisma.room.update({ where: { id: roomId }, data: { status: 'ended', endedAt: daysAgo(40) } });
    const purge = () =>
      purgeExpiredRooms(deps.database, { olderThanSeconds: 86_400, environmentId: tenant.environmentId });
    await prisma.runtimeOperation.updateMany({ where: { roomId }, data: { status: 'completed', completedAt: now() } });
    for (const days of [0, 41]) await deleteOld(deps, days);
    expect([await deletions(), (await purge()).rooms]).toEqual([0, 0]);
    await deleteOld(deps, 39);
    expect(await deletions()).toBe(1);
    const { id } = await prisma.runtimeOperation.findFirstOrThrow({
      where: { subjectId: recordingId, kind: 'recording.delete' },
    });
    expect(await workOnOperation(deps, id, kinds)).toBeNull();
    await eventually(async () => {
      await purge();
      return (await prisma.room.count({ where: { id: roomId } })) === 0;
    });
  });
});
