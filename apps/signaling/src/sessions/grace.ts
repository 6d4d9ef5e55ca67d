export interface GracePeriod {
  readonly reconnectGraceMs: number;
  /** How much longer the grace period lasts when it would be over, in milliseconds; 0 without an outage. */
  graceLeftMs(): number;
}

/** The grace period of a session without a connection. */
export class Grace {
  #timer: NodeJS.Timeout | undefined;

  /** @param onOver called once, unless the period is stopped before */
  start(period: GracePeriod, onOver: () => void, milliseconds = period.reconnectGraceMs): void {
    this.#timer = setTimeout(() => {
      const leftMs = period.graceLeftMs();
      if (leftMs > 0) this.start(period, onOver, leftMs);
      else onOver();
    }, milliseconds);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
