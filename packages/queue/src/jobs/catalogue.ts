import type { OperationKind } from '@callplane/core';
import { Type, type Static } from 'typebox';

/** A job says only that a worker should work on this row now. */
const OperationJob = Type.Object({ operationId: Type.String() }, { additionalProperties: false });
export type OperationJob = Static<typeof OperationJob>;

/**
 * A doorbell: an endpoint has due deliveries. The job's id is the id of the endpoint. The payload names one of the
 * deliveries, because workers of the previous release work on deliveries instead of endpoints. If the sender knows no
 * delivery, `deliveryId` is the id of the endpoint.
 */
const DeliveryJob = Type.Object({ deliveryId: Type.String() }, { additionalProperties: false });
type DeliveryJob = Static<typeof DeliveryJob>;

/** The payload schema of every queue. */
export const QUEUES = {
  'room-end': OperationJob,
  'participant-remove': OperationJob,
  'webhook-delivery': DeliveryJob,
} as const;

export type QueueName = keyof typeof QUEUES;
export type JobPayloads = { [Name in QueueName]: Static<(typeof QUEUES)[Name]> };
export const QUEUE_NAMES = Object.keys(QUEUES) as QueueName[];

export const QUEUE_OF_OPERATION = {
  'room.end': 'room-end',
  'participant.remove': 'participant-remove',
} as const satisfies Record<OperationKind, QueueName>;

/**
 * The id of the job for the next attempt of an operation. BullMQ ignores a job whose id exists in any state, so an
 * attempt has one job at most, however often scans add it. A claim counts the attempt, so neither a delayed job nor one
 * that a dead worker has left behind keeps the job of a later attempt away.
 */
export function operationJobId(row: { id: string; run: number; runAttempts: number }): string {
  return `${row.id}_r${row.run}_a${row.runAttempts}`;
}
