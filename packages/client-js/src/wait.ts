export class Serial {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#last.then(task);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

const FIRST_MS = 200;
const LONGEST_MS = 5_000;

/**
 * The pause before attempt n (from 0). Its upper half is random, so that the clients of a lost gateway do not all come
 * back at once.
 */
export function backoffMs(attempt: number, random: number): number {
  const longest = Math.min(LONGEST_MS, FIRST_MS * 2 ** attempt);
  return longest * (0.5 + 0.5 * random);
}

/** The wait of a task before its next try: for a timer, or for an event. */
export type Wait = () => Promise<unknown>;

/**
 * Every loop of the SDK that tries again. A timer runs between two tries whatever the task waits for: tries that follow
 * each other in promises alone freeze the page.
 * @param task gets the number of earlier tries. Resolves to its wait, or to undefined when no other try follows.
 */
export async function retry(task: (count: number) => Promise<Wait | undefined>): Promise<void> {
  for (let count = 0; ; count++) {
    const wait = await task(count);
    if (wait === undefined) return;
    await Promise.all([wait(), pause(0).over]);
  }
}

/** A pause that `end` cuts short. */
export function pause(milliseconds: number): { over: Promise<void>; end: () => void } {
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    end = () => {
      clearTimeout(timer);
      resolve();
    };
  });
  return { over, end };
}
