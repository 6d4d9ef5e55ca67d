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
  /** Duration of the recordings that ended on the day, in milliseconds. */
  recordedMs: number;
  /** Duration and size of the files that were completed on the day. */
  convertedMs: number;
  recordedBytes: number;
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
    recordedMs: 0,
    convertedMs: 0,
    recordedBytes: 0,
  };
}

export function presentUsageDay(usage: UsageDay) {
  const participantSeconds = Math.floor(usage.participantMs / 1000);
  const minutesOf = (seconds: number): number => Math.round((seconds / 60) * 100) / 100;
  return {
    day: usage.day.toISOString().slice(0, 10),
    rooms: usage.rooms,
    participantSeconds,
    participantMinutes: minutesOf(participantSeconds),
    peakParticipants: usage.peakParticipants,
    relayShare:
      usage.measuredSessions === 0 ? null : Math.round((usage.relayedSessions / usage.measuredSessions) * 1e4) / 1e4,
    deliveries: usage.deliveries,
    recordedMinutes: minutesOf(usage.recordedMs / 1000),
    convertedMinutes: minutesOf(usage.convertedMs / 1000),
    recordedBytes: usage.recordedBytes,
  };
}

/** Rows that one figure of `GET /v1/overview` counts. */
export const OVERVIEW_ROWS_MAX = 10_000;
/** The figures of the last hour come in this many slots. */
export const OVERVIEW_SLOTS = 12;
export const OVERVIEW_SLOT_SECONDS = 300;
