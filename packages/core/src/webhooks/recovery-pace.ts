/** How fast a recovery goes, so that it does not flood a receiver that has just come back. */
export interface RecoveryPace {
  /** Time between two steps of a recovery, with any number of workers. */
  paceMs: number;
  /** Deliveries of one step. */
  batchMax: number;
  /** Deliveries of one step while `dueMax` of the endpoint's deliveries are due, so that new events do not wait long. */
  batchMaxWhileBusy: number;
  dueMax: number;
}

/**
 * 100 deliveries a second, but 10 a second while 200 of the endpoint's deliveries are due. The second figure is not 0:
 * due deliveries may wait for one that the recovery has yet to bring forward.
 */
export const RECOVERY_PACE: RecoveryPace = { paceMs: 1000, batchMax: 100, batchMaxWhileBusy: 10, dueMax: 200 };

/**
 * Maximum number of recoveries of an endpoint that are not complete. Each has a pace of its own, and the sweep that
 * looks for the next step reads all of them, those of disabled endpoints included.
 */
export const RECOVERIES_PENDING_MAX = 10;

/** Maximum number of deliveries in flight that a recovery waits for; an endpoint has eight for each worker at most. */
export const RECOVERY_IN_FLIGHT_MAX = 100;
