export const USAGE_DAYS_MAX = 92;

export interface UsageDay {
  day: Date;
  /** Rooms with at least one participant. */
  rooms: number;
  /** Sum over all sessions, in milliseconds. */
  participantMs: number;
  peakParticipants: number;
  /** Sessions that reported their quality, and those among them that used a relay. */
  measuredSessions: number;
  relayedSessions: number;
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

/** Rows that one figure of `GET /v1/overview` counts. */
export const OVERVIEW_ROWS_MAX = 10_000;
/** The figures of the last hour come in this many slots. */
export const OVERVIEW_SLOTS = 12;
export const OVERVIEW_SLOT_SECONDS = 300;
