import { findOverdueRecordings, stopRecordings } from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import type { Deps } from '../deps.js';

const OVERDUE_PER_SWEEP = 100;

/** Ends the recordings that have reached their longest duration. */
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
