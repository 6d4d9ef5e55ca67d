import { PublicError, type RecordingState, type Tenant } from '@callplane/core';
import { findRecording, stopRecordings } from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import type { Deps } from '../deps.js';

/** @returns the recording as it is then, also if it had ended before */
export async function stopRecording(
  { database, producer, clock }: Pick<Deps, 'database' | 'producer' | 'clock'>,
  tenant: Tenant,
  recordingId: string,
): Promise<RecordingState> {
  const before = await findRecording(database.sql, tenant, recordingId);
  if (before === null) throw new PublicError('RECORDING_NOT_FOUND');
  if (before.status !== 'recording') return before;
  const { operations, deliveries } = await database.transaction((tx) =>
    stopRecordings(tx, tenant, before.roomId, recordingId, clock.now()),
  );
  // The request waits for none of them: scans of the workers and gateways find the rows.
  void publishRoomChanged(producer.redis, before.roomId, null);
  void producer.wakeOperations(operations);
  void producer.wakeDeliveries(deliveries);
  return (await findRecording(database.sql, tenant, recordingId)) ?? before;
}
