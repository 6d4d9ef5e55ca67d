import { ATTEMPTS_PER_RUN, LEASE_SECONDS } from '@callplane/core';
import type { Fleet } from './fleet.js';
import type { Fault } from './fault-plan.js';
import type { Effect } from './ports/gate.js';
import type { Postgres } from './ports/postgres.js';
import type { SimProcess } from './processes.js';

/** Statements that make a lease, and statements that end one with an outcome. */
export const CLAIM = /lease_expires_at = now\(\) \+/;
const OUTCOME = /lease_token = NULL/;
/** In which another worker claims the row of a frozen one whose lease has expired, in milliseconds. */
const WHILE_OTHERS_CLAIM_MS = 20_000;

const LAST_ATTEMPTS = `
  SELECT 1 FROM runtime_operations WHERE status = 'pending' AND lease_token IS NOT NULL AND run_attempts >= $1
  UNION ALL SELECT 1 FROM webhook_deliveries WHERE status = 'delivering' AND run_attempts >= $1 LIMIT 1`;

type Freeze = (process: SimProcess, forMs: number, label: string) => void;
type LeaseFault = Extract<Fault, { afterCommits: number } | { afterOutcomes: number } | { afterClaims: number }>;

/**
 * Faults at the steps of a lease. They happen once each. A random fault meets a step between a claim and its outcome,
 * or the moment after the outcome, in one of a hundred runs.
 */
export class LeaseFaults {
  readonly #happened = new Set<Fault>();
  /** Transactions that a process has committed since its latest claim; none after an outcome. */
  readonly #commitsSinceClaim = new Map<SimProcess, number>();
  readonly #ending = new Set<SimProcess>();
  /** Outcomes and claims so far, by the fault that counts them. */
  readonly #counts = new Map<Fault, number>();

  constructor(
    private readonly fleet: Fleet,
    private readonly postgres: Postgres,
    private readonly faults: readonly Fault[],
    private readonly freeze: Freeze,
  ) {}

  /**
   * Called after each statement that has changed something, until the other faults end.
   * @returns whether the process has died.
   */
  async onEffect(process: SimProcess, effect: Effect): Promise<boolean> {
    const { label } = effect;
    const isClaim = CLAIM.test(effect.text);
    const commits = this.#commits(process, effect);
    const isOutcome = this.#isOutcome(process, effect);
    for (const fault of this.faults) {
      if (!isLeaseFault(fault) || this.#happened.has(fault)) continue;
      if (`${fault.role} ${fault.index}` !== process.name) continue;
      if (fault.do === 'stop after claim') {
        if (!isClaim || !this.#isTimeFor(fault, fault.afterClaims)) continue;
        this.fleet.stop(process.name);
      } else if (fault.do === 'crash after outcome') {
        if (!isOutcome || !this.#isTimeFor(fault, fault.afterOutcomes)) continue;
        await this.fleet.crash(process, `right after the outcome ${label}`);
        return true;
      } else {
        if (fault.afterCommits !== commits) continue;
        this.#happened.add(fault);
        if (fault.do === 'outlive lease') this.freeze(process, LEASE_SECONDS * 1000 + WHILE_OTHERS_CLAIM_MS, label);
        else this.#letLeaseExpire(process, label);
      }
    }
    return false;
  }

  /**
   * Called for each statement, also once the other faults have ended: a last attempt comes hours after the first.
   * @returns whether the process has died.
   */
  async onLastAttempt(process: SimProcess, { text, label }: Effect): Promise<boolean> {
    if (!CLAIM.test(text)) return false;
    for (const fault of this.faults) {
      if (fault.do !== 'crash in last attempt' || this.#happened.has(fault)) continue;
      if (!process.name.startsWith(`${fault.role} `)) continue;
      if ((await this.postgres.query(LAST_ATTEMPTS, [ATTEMPTS_PER_RUN])).length === 0) continue;
      this.#happened.add(fault);
      await this.fleet.crash(process, `in the last attempt after ${label}`);
      return true;
    }
    return false;
  }

  /** All processes pause until the lease has just expired, so that its holder may be the first one that continues. */
  #letLeaseExpire(process: SimProcess, label: string): void {
    const pauseMs = LEASE_SECONDS * 1000 + 1;
    this.freeze(process, pauseMs, label);
    this.fleet.world.after(0, null, 'all pause', () => this.fleet.world.jump(pauseMs));
  }

  /** @returns the number of commits between the latest claim of the process and this statement; null without a claim. */
  #commits(process: SimProcess, { text, isCommitted }: Effect): number | null {
    if (OUTCOME.test(text)) this.#commitsSinceClaim.delete(process);
    else if (CLAIM.test(text)) this.#commitsSinceClaim.set(process, -1);
    const before = this.#commitsSinceClaim.get(process);
    if (before === undefined || !isCommitted) return null;
    this.#commitsSinceClaim.set(process, before + 1);
    return before + 1;
  }

  #isOutcome(process: SimProcess, { text, isCommitted }: Effect): boolean {
    if (OUTCOME.test(text)) this.#ending.add(process);
    return isCommitted && this.#ending.delete(process);
  }

  #isTimeFor(fault: Fault, number: number): boolean {
    const count = (this.#counts.get(fault) ?? 0) + 1;
    this.#counts.set(fault, count);
    if (count < number) return false;
    this.#happened.add(fault);
    return true;
  }
}

function isLeaseFault(fault: Fault): fault is LeaseFault {
  return 'afterCommits' in fault || 'afterOutcomes' in fault || 'afterClaims' in fault;
}
