import { isAcceptedTime } from '../time.js';

export const DAY_MS = 24 * 60 * 60 * 1000;

/** Number of days that one request for usage covers. */
export const USAGE_DAYS_MAX = 92;

/** The usage of an environment on one UTC day. */
export interface UsageDay {
  /** Midnight UTC. */
  day: Date;
  /** Rooms with at least one participant. */
  rooms: number;
  /** Sum over all sessions, in milliseconds. */
  participantMs: number;
  /** Maximum number of participants at one instant. */
  peakParticipants: number;
  /** Sessions that reported their quality, and those among them that used a relay. */
  measuredSessions: number;
  relayedSessions: number;
  /** Webhook deliveries that were created. */
  deliveries: number;
}

export function noUsage(day: Date): UsageDay {
  return {
    day,
    rooms: 0,
    participantMs: 0,
    peakParticipants: 0,
    measuredSessions: 0,
    relayedSessions: 0,
    deliveries: 0,
  };
}

/** Presents a day of usage for the API. */
export function presentUsageDay(usage: UsageDay) {
  const participantSeconds = Math.floor(usage.participantMs / 1000);
  return {
    day: usage.day.toISOString().slice(0, 10),
    rooms: usage.rooms,
    participantSeconds,
    participantMinutes: Math.round((participantSeconds / 60) * 100) / 100,
    peakParticipants: usage.peakParticipants,
    relayShare:
      usage.measuredSessions === 0 ? null : Math.round((usage.relayedSessions / usage.measuredSessions) * 1e4) / 1e4,
    deliveries: usage.deliveries,
  };
}

/** The day of a text `YYYY-MM-DD`, as midnight UTC; null if there is no such day from 1970 to 9999. */
export function parseDay(text: string): Date | null {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return null;
  const day = new Date(`${text}T00:00:00.000Z`);
  return isAcceptedTime(day) && day.toISOString().startsWith(text) ? day : null;
}

/** The UTC day of a time, as midnight. */
export function dayOf(time: Date): Date {
  return new Date(Math.floor(time.getTime() / DAY_MS) * DAY_MS);
}

/** The days from the first to the last one, both included. */
export function daysBetween(first: Date, last: Date): Date[] {
  const count = Math.max(0, Math.floor((last.getTime() - first.getTime()) / DAY_MS) + 1);
  return Array.from({ length: count }, (_, index) => new Date(first.getTime() + index * DAY_MS));
}

/** Rows that one figure of `GET /v1/overview` counts. */
export const OVERVIEW_ROWS_MAX = 10_000;
/** The figures of the last hour come in this many slots. */
export const OVERVIEW_SLOTS = 12;
export const OVERVIEW_SLOT_SECONDS = 300;
