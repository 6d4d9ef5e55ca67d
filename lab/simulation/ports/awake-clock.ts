/** Takes the place of packages/core/src/awake-clock.ts: simulated processes freeze only when the simulation says. */
class AwakeClock {
  readonly stoodMs = 0;

  get nowMs(): number {
    return performance.now();
  }

  after(milliseconds: number, expire: () => void): () => void {
    const timer = setTimeout(expire, milliseconds);
    return () => clearTimeout(timer);
  }
}

export type { AwakeClock };

export function awakeClock(): AwakeClock {
  return new AwakeClock();
}
