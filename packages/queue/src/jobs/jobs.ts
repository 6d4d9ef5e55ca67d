import { randomUUID } from 'node:crypto';
import { laneOf, QUEUE_OF_OPERATION, type Lane, type SlotMs } from '@callplane/core';

/** The queues, and what their jobs hold: ids. */
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

export interface OperationJob {
  operationId: string;
}

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

export interface TurnJob extends Required<Pick<Turn, 'endpointId' | 'environmentId' | 'slotMs' | 'lane' | 'ticket'>> {
  /** A UUID. The fencing tokens of the turn's workers begin with it. */
  turn: string;
}

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
