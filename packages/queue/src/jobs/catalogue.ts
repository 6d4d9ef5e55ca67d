import type { OperationKind } from '@callplane/core';
import { Type, type Static } from 'typebox';

/** Keys of this product in a Redis that it may share. */
export const QUEUE_PREFIX = 'callplane';

/** A job says "look at this row now" and nothing else. */
export const OperationJob = Type.Object({ operationId: Type.String() }, { additionalProperties: false });
export type OperationJob = Static<typeof OperationJob>;

/** A delivery to look at now. */
export const DeliveryJob = Type.Object({ deliveryId: Type.String() }, { additionalProperties: false });
export type DeliveryJob = Static<typeof DeliveryJob>;

/** Every queue, its payload and whose rows it wakes. */
export const QUEUES = {
  'room-end': OperationJob,
  'participant-remove': OperationJob,
  'webhook-delivery': DeliveryJob,
} as const;

/** Payload of each queue. */
export interface JobPayloads {
  'room-end': OperationJob;
  'participant-remove': OperationJob;
  'webhook-delivery': DeliveryJob;
}

export type QueueName = keyof typeof QUEUES;

export const QUEUE_OF_OPERATION = {
  'room.end': 'room-end',
  'participant.remove': 'participant-remove',
} as const satisfies Record<OperationKind, QueueName>;

/**
 * A job whose id exists in any state silently swallows a re-add, so each wake-up of a row has an id of its own; that
 * two of them may both arrive is harmless, because the claim decides who works.
 */
export function wakeUpJobId(row: { id: string; run: number; runAttempts: number; wakeUps: number }): string {
  return `${row.id}_r${row.run}_a${row.runAttempts}_w${row.wakeUps}`;
}
