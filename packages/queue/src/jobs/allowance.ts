/** If fewer jobs than this wait, the workers keep up, and every environment gets its full allowance again. */
const WAITING_FEW = 100;
/** Wake-ups that one process may send for one environment until fewer than {@link WAITING_FEW} jobs wait. */
export const WAKE_UPS_PER_ENVIRONMENT = 500;
/** If this many jobs wait, no wake-up is sent for any environment. */
const WAITING_MAX = 20_000;

/**
 * Bounds the jobs that Redis holds for each environment. Workers take jobs from Redis as fast as they arrive, so jobs
 * pile up only if no worker runs. These jobs are useless: a worker that starts finds the rows by scanning PostgreSQL.
 */
export class Allowance {
  readonly #sent = new Map<string, number>();
  #isFull = false;

  /** Returns whether one more wake-up of this environment may be sent, and counts it. */
  take(environmentId: string): boolean {
    const sent = this.#sent.get(environmentId) ?? 0;
    if (this.#isFull || sent >= WAKE_UPS_PER_ENVIRONMENT) return false;
    this.#sent.set(environmentId, sent + 1);
    return true;
  }

  /** Whether any environment has used some of its allowance, or the limit of all is reached. */
  get isUsed(): boolean {
    return this.#isFull || this.#sent.size > 0;
  }

  /** @param waiting number of jobs, of all environments, that no worker has taken yet. */
  seeWaiting(waiting: number): void {
    this.#isFull = waiting >= WAITING_MAX;
    if (waiting < WAITING_FEW) this.#sent.clear();
  }
}
