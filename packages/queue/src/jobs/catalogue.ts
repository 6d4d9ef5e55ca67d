import type { OperationKind } from '@callplane/core';

/** A job says only that a worker should work on this row now. */
export interface OperationJob {
  operationId: string;
}

/** A turn of an endpoint with due deliveries, see `turns.ts`. */
export interface TurnJob {
  /** A UUID. The fencing tokens of the turn's workers begin with it. */
  turn: string;
  endpointId: string;
  environmentId: string;
  /** Expected duration of the endpoint's next attempt, in milliseconds; null if it was never tried. */
  slotMs: number | null;
  ticket: number;
}

/** Turns of endpoints that need a second or more, or were never tried, are in `webhook-delivery-slow`. */
export const QUEUE_NAMES = ['room-end', 'participant-remove', 'webhook-delivery', 'webhook-delivery-slow'] as const;
export type QueueName = (typeof QUEUE_NAMES)[number];

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
