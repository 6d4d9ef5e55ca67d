export interface BatchMetrics {
  /** Observes the size and the duration of a batch. */
  batch(name: BatchName, size: number, durationMs: number): void;
}

/** The batches of the gateway, as labels of its metrics. */
export const BATCH_NAMES = [
  'admissions',
  'joins',
  'resumptions',
  'disconnections',
  'ends',
  'metadata',
  'mutes',
  'quality',
] as const;
export type BatchName = (typeof BATCH_NAMES)[number];
