/** The source of the current time, injected so that tests can set it. */
export interface Clock {
  now(): Date;
}

/**
 * The result of work that must end in time. Late work continues, and its result is ignored.
 * @throws the error of `late` after so long.
 */
export async function inTime<T>(work: PromiseLike<T>, milliseconds: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), milliseconds);
  });
  return Promise.race([work, passed]).finally(() => clearTimeout(timer));
}

const EARLIEST = new Date('1970-01-01T00:00:00.000Z');
const LATEST = new Date('9999-12-31T23:59:59.999Z');

/**
 * Whether a request may name a time: 1970 to 9999. ISO 8601 with four-digit years, PostgreSQL and ids that sort by time
 * can represent these. An invalid date is none of them.
 */
export function isAcceptedTime(time: Date): boolean {
  return time >= EARLIEST && time <= LATEST;
}

export const DAY_MS = 24 * 60 * 60 * 1000;

/** The day of a text `YYYY-MM-DD`, as midnight UTC; null if there is no such day from 1970 to 9999. */
export function parseDay(text: string): Date | null {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return null;
  const day = new Date(`${text}T00:00:00.000Z`);
  return isAcceptedTime(day) && day.toISOString().startsWith(text) ? day : null;
}

export function dayOf(time: Date): Date {
  return new Date(Math.floor(time.getTime() / DAY_MS) * DAY_MS);
}

export function daysBetween(first: Date, last: Date): Date[] {
  const count = Math.max(0, Math.floor((last.getTime() - first.getTime()) / DAY_MS) + 1);
  return Array.from({ length: count }, (_, index) => new Date(first.getTime() + index * DAY_MS));
}

/** Difference of two clocks from which something may break: signatures, tokens and credentials have margins of seconds. */
export const CLOCK_DIFFERENCE_MS_MAX = 2000;
