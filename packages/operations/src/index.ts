export * from './exhausted.js';
export type { Attempt, Kind, Kinds, OperationDeps, Slots, Step } from './kind.js';
export { operationMetrics } from './metrics.js';
export { runOperations } from './run-operations.js';
export { Scan, SCAN_FAST_MS } from './scan.js';
export { workOnOperation } from './work.js';
