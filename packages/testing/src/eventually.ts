import { setTimeout as delay } from 'node:timers/promises';

export interface Patience {
  /** Default 10000. */
  timeoutMs?: number;
  /** Pause between two tries, default 25. */
  intervalMs?: number;
}

/**
 * Calls `attempt` until it neither throws nor resolves to false, null or undefined, and returns what it resolved to.
 * After `timeoutMs` it throws the last error, or says that the condition did not come true.
 * An attempt made of `expect()` lines must end with `return true`.
 */
export async function eventually<T>(
  attempt: () => T | Promise<T>,
  { timeoutMs = 10_000, intervalMs = 25 }: Patience = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const until = performance.now() + timeoutMs;
  for (;;) {
    let failure: unknown = new Error('the condition did not come true');
    try {
      const result = await attempt();
      if (result !== false && result !== null && result !== undefined) return result as NonNullable<Exclude<T, false>>;
    } catch (error) {
      failure = error;
    }
    if (performance.now() >= until)
      throw new Error(`not within ${timeoutMs} ms: ${messageOf(failure)}`, { cause: failure });
    await delay(intervalMs);
  }
}

function messageOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
