/** Takes the place of packages/db/src/client/awake-clock.ts: simulated processes freeze only when the simulation says. */
export class AwakeClock {
  readonly stoodMs = 0;

  get nowMs(): number {
    return performance.now();
  }

  after(milliseconds: number, expire: () => void): () => void {
    const timer = setTimeout(expire, milliseconds);
    return () => clearTimeout(timer);
  }

  close(): void {
    // It has no timer of its own.
  }
}
