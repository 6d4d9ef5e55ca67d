import { AsyncLocalStorage } from 'node:async_hooks';

/** A simulated process: everything that ends with it. */
export interface SimProcess {
  /** `cleanup-worker 2`; a restarted process has the same name. */
  readonly name: string;
  /** False after a crash: nothing of it runs any more. */
  isAlive: boolean;
  /** Until this simulated time none of its steps runs. */
  frozenUntilMs: number;
  /** How far its clock differs from PostgreSQL's, in milliseconds. */
  readonly skewMs: number;
  /** Statements that changed something, so far. */
  effects: number;
  /** Called when the process dies. */
  readonly onDeath: (() => void)[];
  /** Its connection pools, in the order in which it made them. */
  readonly pools: unknown[];
}

/** The simulated process whose code runs. Node keeps it across promises, and the replaced ports across all other callbacks. */
export const running = new AsyncLocalStorage<SimProcess>();
