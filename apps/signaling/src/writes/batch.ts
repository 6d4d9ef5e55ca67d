import { Batches, type BatchSettings } from '@callplane/runtime';
import type { BatchName, SignalingMetrics } from '../metrics.js';

export type BatchMetrics = Pick<SignalingMetrics, 'batch'>;

/** Batches by room, in which items of the same owner run one after the other. */
export function batchesOf<Item, Result>(
  metrics: BatchMetrics,
  { name, ...settings }: BatchSettings<Item, Result> & { name: BatchName; ownerOf(item: Item): string },
): Batches<Item, Result> {
  return new Batches({ ...settings, onBatch: (size, durationMs) => metrics.batch(name, size, durationMs) });
}

/** Whether a client still waits for this instance. */
export type Wanted = 'yes' | 'drain' | 'disconnected';

/** An item of a batch, with its client. */
export interface Waiting<Input> {
  input: Input;
  /** Called when the batch begins. */
  wanted: () => Wanted;
}

/** Nothing was written for this client. */
export interface Unwanted {
  outcome: 'drain' | 'disconnected';
}

/**
 * Runs a batch without the clients that disconnected while they waited. In a drain, clients whose batch has not begun
 * go to another instance. The drain finishes the batches that have begun.
 * @param run its results are in the order of the inputs
 */
export async function runWanted<Input, Outcome>(
  items: readonly Waiting<Input>[],
  run: (inputs: Input[]) => Promise<Outcome[]>,
): Promise<(Outcome | Unwanted)[]> {
  const wanted = items.map((item) => item.wanted());
  const inputs = items.filter((_, index) => wanted[index] === 'yes').map(({ input }) => input);
  const outcomes = inputs.length === 0 ? [] : await run(inputs);
  const next = outcomes.values();
  return wanted.map((one) => {
    if (one !== 'yes') return { outcome: one };
    const { value, done } = next.next();
    if (done === true) throw new Error('a result of the batch is missing');
    return value;
  });
}
