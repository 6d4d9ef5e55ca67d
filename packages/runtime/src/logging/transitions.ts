import type { Logger } from './logger.js';

/**
 * The transitions of rows that the apps log, under the names of the moves in specs/leases.qnt. The other moves of the
 * specification have no line: time passes, a wake-up is lost, a process dies.
 */
export const TRANSITIONS = [
  'accept',
  'rerun',
  'replay',
  'retryNow',
  'claim',
  'complete',
  'retry',
  'fail',
  'failOld',
  'release',
  'endLease',
  'endExhausted',
  'expireRun',
] as const;

export type Transition = (typeof TRANSITIONS)[number];

export interface TransitionFields {
  /** Which kind of row: the specification has a module for each. */
  subject: 'operation' | 'delivery';
  /** The id of the row. */
  row: string;
  /** The lease that the transition makes or ends; {@link leaseOf}. */
  lease?: string;
  run?: number;
  attempt?: number;
  /** Time since before the statement that made the transition, in milliseconds. */
  tookMs: number;
  /** Time after the transition before which the lease cannot expire, or the retry is not due. */
  untilMs?: number;
}

/** The message of the lines that `npm run model -- --trace FILE` reads. */
export const TRANSITION = 'transition';

/** Logs a transition at level debug. Costs one call if the level is another one. */
export function logTransition(logger: Logger, transition: Transition, fields: () => TransitionFields): void {
  logger.debug(TRANSITION, () => ({ transition, ...fields() }));
}

/** Names a lease in the log: enough of its token to tell it from the other leases of its row. */
export function leaseOf(token: string): string {
  return token.slice(0, 8);
}
