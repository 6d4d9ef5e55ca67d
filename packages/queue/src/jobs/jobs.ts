import { randomUUID } from 'node:crypto';
import { laneOf, PATH_ID_PATTERN, QUEUE_OF_OPERATION, type Lane, type SlotMs } from '@callplane/core';
import { Type, type Static } from 'typebox';
import { payloadReader } from '../redis/payloads.js';

/** The queues. Their jobs hold ids. */
export const QUEUE_NAMES = [
  ...Object.values(QUEUE_OF_OPERATION),
  'webhook-delivery' as const,
  'webhook-delivery-slow' as const,
];
export type QueueName = (typeof QUEUE_NAMES)[number];

/** Turns of endpoints that need a second or more, or were never tried, are in the slow lane. */
export const QUEUE_OF_LANE = {
  fast: 'webhook-delivery',
  slow: 'webhook-delivery-slow',
} as const satisfies Record<Lane, QueueName>;

export interface NewJob {
  queue: QueueName;
  job: { name: string; data: object; opts: object };
}

const Id = Type.String({ pattern: PATH_ID_PATTERN });

const OperationJob = Type.Object({ operationId: Id });
export type OperationJob = Static<typeof OperationJob>;

/**
 * The id of the job for the next attempt of an operation. BullMQ ignores a job whose id exists in any state, so an
 * attempt has one job at most, however often scans add it. A claim counts the attempt, so neither a delayed job nor one
 * that a dead worker has left behind keeps the job of a later attempt away.
 */
export function operationJobId(row: { id: string; run: number; runAttempts: number }): string {
  return `${row.id}_r${row.run}_a${row.runAttempts}`;
}

/** A turn of an endpoint with due deliveries: a worker sends some of them. */
export interface Turn {
  endpointId: string;
  environmentId: string;
  slotMs: SlotMs;
  /** By default the lane of `slotMs`. */
  lane?: Lane;
  /** Number among the turns of the endpoint that may run at once. */
  ticket?: number;
  /** Small numbers go first. Without one, a turn of an endpoint that was never tried goes before all others. */
  priority?: number;
  delayMs?: number;
}

/** Above the longest attempt, in milliseconds. */
const SLOT_MS_MAX = 3_600_000;
/** Above the tickets that an endpoint can have. Scans have ticket -1. */
const TICKET_MAX = 1000;

const TurnJob = Type.Object({
  /** A UUID. The fencing tokens of the turn's workers begin with it. */
  turn: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
  endpointId: Id,
  environmentId: Id,
  slotMs: Type.Union([Type.Number({ minimum: 0, maximum: SLOT_MS_MAX }), Type.Null()]),
  lane: Type.Union([Type.Literal('fast'), Type.Literal('slow')]),
  ticket: Type.Integer({ minimum: -1, maximum: TICKET_MAX }),
});
export type TurnJob = Static<typeof TurnJob>;

const readTurn = payloadReader('a turn', TurnJob);
const readOperation = payloadReader('the job of an operation', OperationJob);

/** @returns a parser of the queue's job data, which throws an InvalidPayloadError. */
export const jobReader = (queue: QueueName): ((data: unknown) => object) =>
  Object.values<QueueName>(QUEUE_OF_LANE).includes(queue) ? readTurn : readOperation;

/** Turns of one endpoint that are due within this time share a job, in milliseconds. */
const LATER_STEP_MS = 100;

/**
 * The job of a turn. While a turn of the same endpoint and ticket waits, BullMQ drops the job. While such a turn runs,
 * whose claim may not have seen the newest delivery, BullMQ keeps the job and adds it when the turn ends. A turn that
 * is due later has an id instead.
 */
export function turnJob(turn: Turn): NewJob {
  const { endpointId, environmentId, slotMs, lane = laneOf(slotMs), ticket = 0, priority, delayMs } = turn;
  const place = priority === undefined && slotMs === null ? { lifo: true } : { priority: priority ?? 1 };
  const opts =
    delayMs === undefined
      ? { deduplication: { id: `${endpointId}.${ticket}`, keepLastIfActive: true }, ...place }
      : {
          jobId: `${endpointId}@${Math.ceil((nowMs() + delayMs) / LATER_STEP_MS)}`,
          delay: delayMs,
          priority: priority ?? 1,
        };
  const data: TurnJob = { turn: randomUUID(), endpointId, environmentId, slotMs, lane, ticket };
  return { queue: QUEUE_OF_LANE[lane], job: { name: 'turn', data, opts } };
}

/** BullMQ takes times by the clock of this machine. */
// oxlint-disable-next-line no-restricted-properties
export const nowMs = (): number => Date.now();
