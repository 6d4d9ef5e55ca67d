import type { OperationKind } from '@callplane/core';
import { Type, type Static } from 'typebox';

/** A job says only that a worker should look at this row now. */
const OperationJob = Type.Object({ operationId: Type.String() }, { additionalProperties: false });
type OperationJob = Static<typeof OperationJob>;

/** A turn of an endpoint with due deliveries, see `turns.ts`. */
export const TurnJob = Type.Object(
  {
    /** A UUID. The fencing tokens of the turn's workers begin with it. */
    turn: Type.String(),
    endpointId: Type.String(),
    environmentId: Type.String(),
    /** Expected duration of the endpoint's next attempt, in milliseconds; null if it was never tried. */
    slotMs: Type.Union([Type.Integer(), Type.Null()]),
    ticket: Type.Integer(),
  },
  { additionalProperties: false },
);
export type TurnJob = Static<typeof TurnJob>;

/** The payload schema of every queue. */
export const QUEUES = {
  'room-end': OperationJob,
  'participant-remove': OperationJob,
  'webhook-delivery': TurnJob,
  /** Turns of endpoints that need a second or more, and of those that were never tried. */
  'webhook-delivery-slow': TurnJob,
} as const;

export type QueueName = keyof typeof QUEUES;
export type JobPayloads = { [Name in QueueName]: Static<(typeof QUEUES)[Name]> };
export const QUEUE_NAMES = Object.keys(QUEUES) as QueueName[];

export const QUEUE_OF_OPERATION = {
  'room.end': 'room-end',
  'participant.remove': 'participant-remove',
} as const satisfies Record<OperationKind, QueueName>;

/**
 * Only rows that are due within this time get a job, in milliseconds. Later rows wait in PostgreSQL until a scan finds
 * them, and use no memory of Redis.
 */
export const SENT_AHEAD_MS = 60_000;

/**
 * BullMQ silently ignores a job whose id already exists in any state, so every wake-up of a row gets its own id. Two
 * jobs of one row are harmless, because only one worker can claim the row.
 */
export function wakeUpJobId(row: { id: string; run: number; runAttempts: number; wakeUps: number }): string {
  return `${row.id}_r${row.run}_a${row.runAttempts}_w${row.wakeUps}`;
}
