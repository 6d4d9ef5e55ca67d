/** Time for a client to answer an offer, in milliseconds. */
const ANSWER_WITHIN_MS = 15_000;
/** Pause before a stream that the media server did not know is requested again, in milliseconds. */
const ABSENT_AGAIN_MS = 1000;
/** Pauses after consecutive failures, in milliseconds. The last one repeats. */
const FAILED_AGAIN_MS = [250, 1000, 2000, 5000, 10_000, 30_000];

/** The timers of a subscriber. Each one replaces its predecessor. */
export class SubscriberTimers {
  #failures = 0;
  #answer: NodeJS.Timeout | undefined;
  #absent: NodeJS.Timeout | undefined;
  #pause: NodeJS.Timeout | undefined;

  get failures(): number {
    return this.#failures;
  }

  /** The pause before the next attempt, in milliseconds. */
  get pauseMs(): number {
    return FAILED_AGAIN_MS[Math.min(this.#failures, FAILED_AGAIN_MS.length - 1)] ?? 0;
  }

  failed(): void {
    this.#failures += 1;
  }

  worked(): void {
    this.#failures = 0;
  }

  expectAnswer(onLate: (error: Error) => void): void {
    this.stopWaiting();
    const late = () => onLate(new Error(`no answer within ${ANSWER_WITHIN_MS} ms`));
    this.#answer = setTimeout(late, ANSWER_WITHIN_MS);
  }

  stopWaiting(): void {
    clearTimeout(this.#answer);
  }

  requestAbsent(again: () => void): void {
    this.stopAbsent();
    this.#absent = setTimeout(again, ABSENT_AGAIN_MS);
  }

  stopAbsent(): void {
    clearTimeout(this.#absent);
  }

  /** Stops waiting for the client and for absent streams. */
  stopRequests(): void {
    this.stopWaiting();
    this.stopAbsent();
  }

  pause(ms: number, over: () => void): void {
    this.#pause = setTimeout(over, ms);
  }

  stopPause(): void {
    clearTimeout(this.#pause);
  }
}
