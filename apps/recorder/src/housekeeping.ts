import { recordingFileKey } from '@callplane/core';
import {
  deleteErasedRecordings,
  deleteOldRecordings,
  findErasedFiles,
  findOverdueRecordings,
  forgetRecordingFile,
  stopRecordings,
} from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import type { Deps } from './deps.js';

const OVERDUE_PER_SWEEP = 100;
const DAY_MS = 86_400_000;

/** Stops recordings that have reached their longest duration. */
export async function stopOverdue({ database, producer, clock }: Deps): Promise<void> {
  for (const { recordingId, roomId, ...tenant } of await findOverdueRecordings(database.sql, OVERDUE_PER_SWEEP)) {
    const { operations, deliveries } = await database.transaction((tx) =>
      stopRecordings(tx, tenant, roomId, recordingId, clock.now()),
    );
    await publishRoomChanged(producer.redis, roomId, null);
    await producer.wakeOperations(operations);
    await producer.wakeDeliveries(deliveries);
  }
}

/**
 * Deletes recordings whose time is over, and recordings and tracks of erased participants.
 * @param retentionDays 0: recordings are kept
 */
export async function deleteOld({ database, producer, clock, store }: Deps, retentionDays: number): Promise<void> {
  const now = clock.now();
  const { operations } = await database.transaction((tx) => deleteErasedRecordings(tx, null, now));
  await producer.wakeOperations(operations);
  if (retentionDays > 0) {
    const endedBefore = new Date(now.getTime() - retentionDays * DAY_MS);
    const old = await database.transaction((tx) => deleteOldRecordings(tx, endedBefore, now));
    await producer.wakeOperations(old.operations);
  }
  for (const erased of await findErasedFiles(database.sql, null)) {
    await store.removeAll(recordingFileKey(erased.recordingId, erased.file));
    await forgetRecordingFile(database.sql, erased);
  }
}
