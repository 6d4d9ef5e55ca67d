import type { Metrics } from '../../../packages/runtime/src/index.js';

const count = { inc: () => undefined, observe: () => undefined, set: () => undefined, labels: () => count };

/** Metrics without a reader. */
export const noMetrics: Metrics = {
  counter: () => count,
  histogram: () => count,
  gauge: () => undefined,
  gauges: () => undefined,
  totals: () => undefined,
} as unknown as Metrics;
