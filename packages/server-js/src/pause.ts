import { setTimeout as delay } from 'node:timers/promises';

/** Waits. Rejects with the reason of the signal as soon as it is aborted. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}
