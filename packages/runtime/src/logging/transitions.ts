import type { Logger } from './logger.js';

/**
 * The transitions of operations and deliveries that the apps log, under the names of the moves in specs/leases.qnt. The
 * other moves of the specification have no line: time passes, a wake-up is lost, a process dies.
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

/** The transitions of the sessions of rooms, under the names of the moves in specs/sessions.qnt. */
export const SESSION_TRANSITIONS = [
  'join',
  'supersede',
  'resume',
  'disconnect',
  'leave',
  'endLost',
  'acceptRemoval',
  'remove',
  'completeRemoval',
  'acceptEnd',
  'endOfRoom',
  'completeEnd',
] as const;

export type SessionTransition = (typeof SESSION_TRANSITIONS)[number];

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
  /** The endpoint and the room whose deliveries are sent in order, and the place of this one among them. */
  endpoint?: string;
  room?: string;
  sequence?: number;
}

/** The row of a session's transition is its room: all sessions of a room are compared together. */
export interface SessionTransitionFields {
  row: string;
  /** Time since before the statement that made the transition, in milliseconds. */
  tookMs: number;
  participant?: string;
  session?: string;
  /** The connection that the transition makes or ends. */
  connection?: number;
  /** The room's version that contains the transition: the order of these transitions. */
  version?: number | null;
  /** `maxParticipants` of the room at a join. */
  places?: number;
  /** How long the session must have been without its connection, in milliseconds. */
  graceMs?: number;
}

/** The message of the lines that `npm run model -- --trace FILE` reads. */
export const TRANSITION = 'transition';

/** Logs a transition at level debug. Costs one call if the level is another one. */
export function logTransition(logger: Logger, transition: Transition, fields: () => TransitionFields): void {
  logger.debug(TRANSITION, () => ({ transition, ...fields() }));
}

/** Logs a transition of a session, a participant or its room at level debug. */
export function logSessionTransition(
  logger: Logger,
  transition: SessionTransition,
  fields: () => SessionTransitionFields,
): void {
  logger.debug(TRANSITION, () => ({ subject: 'session', transition, ...fields() }));
}

/** Names a lease in the log: enough of its token to tell it from the other leases of its row. */
export function leaseOf(token: string): string {
  return token.slice(0, 8);
}
