import type { Permission, SessionEndReason, TrackIdentity } from '../participants/participant.js';
import { isOpen, type RoomStatus } from '../rooms/room.js';

export const QUALITY_LEVELS = ['good', 'fair', 'poor', 'lost'] as const;
export type QualityLevel = (typeof QUALITY_LEVELS)[number];

/** How long a session was in each level, and how long its media went through a relay, in whole seconds. */
export type QualitySeconds = Record<QualityLevel | 'relayed', number>;

const NONE: QualitySeconds = { good: 0, fair: 0, poor: 0, lost: 0, relayed: 0 };

/** Time before the first report does not count. Fractions of a second stay for the next {@link take}. */
export class QualityClock {
  #level: QualityLevel | null = null;
  #isRelayed = false;
  #sinceMs = 0;
  readonly #ms: QualitySeconds = { ...NONE };

  /** @param nowMs of a clock that never goes back. */
  set(level: QualityLevel, isRelayed: boolean, nowMs: number): void {
    this.#count(nowMs);
    this.#level = level;
    this.#isRelayed = isRelayed;
  }

  /** The connection is lost: the time until the next report counts as lost. Without a report before, nothing counts. */
  lose(nowMs: number): void {
    if (this.#level !== null) this.set('lost', this.#isRelayed, nowMs);
  }

  /** @returns the whole seconds since the last call; null if there are none. */
  take(nowMs: number): QualitySeconds | null {
    this.#count(nowMs);
    const seconds = { ...NONE };
    for (const key of Object.keys(seconds) as (keyof QualitySeconds)[]) {
      seconds[key] = Math.floor(this.#ms[key] / 1000);
      this.#ms[key] -= seconds[key] * 1000;
    }
    return Object.values(seconds).some((value) => value > 0) ? seconds : null;
  }

  #count(nowMs: number): void {
    if (this.#level !== null) {
      const elapsedMs = Math.max(0, nowMs - this.#sinceMs);
      this.#ms[this.#level] += elapsedMs;
      if (this.#isRelayed) this.#ms.relayed += elapsedMs;
    }
    this.#sinceMs = nowMs;
  }
}

export function worstLevel(seconds: QualitySeconds): QualityLevel | null {
  return QUALITY_LEVELS.findLast((level) => seconds[level] > 0) ?? null;
}

/** Number of ended publications that a session remembers: the latest ones. */
export const PAST_TRACKS_MAX = 100;

interface TrackRecord extends TrackIdentity {
  publishedAt: Date;
  /** Null while the track is published. */
  unpublishedAt: Date | null;
}

export interface SessionRecord {
  id: string;
  roomId: string;
  participantId: string;
  startedAt: Date;
  endedAt: Date | null;
  endReason: SessionEndReason | null;
  permissions: readonly Permission[];
  /** In the order of their publication. */
  tracks: TrackRecord[];
  quality: QualitySeconds;
}

export function presentSessionRecord(session: SessionRecord) {
  const { good, fair, poor, lost, relayed } = session.quality;
  const worst = worstLevel(session.quality);
  return {
    id: session.id,
    roomId: session.roomId,
    participantId: session.participantId,
    joinedAt: session.startedAt.toISOString(),
    leftAt: session.endedAt === null ? null : session.endedAt.toISOString(),
    reason: session.endReason,
    permissions: [...session.permissions],
    tracks: session.tracks.map(({ trackId, kind, source, publishedAt, unpublishedAt }) => ({
      trackId,
      kind,
      source,
      publishedAt: publishedAt.toISOString(),
      unpublishedAt: unpublishedAt === null ? null : unpublishedAt.toISOString(),
    })),
    quality: worst === null ? null : { worst, relay: relayed > 0, seconds: { good, fair, poor, lost, relayed } },
  };
}

/** Participants in the lobby of one room. */
export const WAITING_MAX = 500;

export interface JoiningRoom {
  status: RoomStatus;
  maxParticipants: number;
  rosterPaged: boolean;
  /** Live sessions of the room, without the lobby. A session in its grace period keeps its place. */
  liveSessions: number;
  /** Live sessions in the lobby. */
  waitingSessions: number;
}

/** A participant that joins, as its row says. Null: this room has no such participant, or it has no such token. */
interface JoiningParticipant {
  removed: boolean;
  tokenRevoked: boolean;
  latestJoin: number;
  hasLiveSession: boolean;
  /** Whether it joins into the lobby. Its live session is there, too. */
  waiting: boolean;
}

export interface JoinCandidate {
  participant: JoiningParticipant | null;
  joinNumber: number;
}

type JoinDecision = 'join' | 'not_found' | 'removed' | 'token_revoked' | 'overtaken' | 'room_ended' | 'capacity';

/** Whether a join can be decided without its room. */
export function refusedAtOnce({ participant, joinNumber }: JoinCandidate): JoinDecision | null {
  if (participant === null) return 'not_found';
  if (participant.removed) return 'removed';
  if (participant.tokenRevoked) return 'token_revoked';
  // A later join of this participant may have committed already; this one must not supersede it.
  return joinNumber < participant.latestJoin ? 'overtaken' : null;
}

/**
 * Decides joins of different participants of one room, which all see the same state, in the order of their arrival.
 * @param rosterFullMax the roster becomes paged when the room has more live sessions than this.
 * @returns `rosterPaged`: whether the roster is paged after these joins.
 */
export function decideJoins(room: JoiningRoom, candidates: readonly JoinCandidate[], rosterFullMax: number) {
  let { liveSessions, waitingSessions } = room;
  // A room stays paged until it is empty.
  let rosterPaged = room.rosterPaged && liveSessions > 0;
  const decisions = candidates.map((candidate): JoinDecision => {
    const refused = refusedAtOnce(candidate);
    if (refused !== null) return refused;
    if (!isOpen(room.status)) return 'room_ended';
    const replaced = candidate.participant?.hasLiveSession === true ? 1 : 0;
    if (candidate.participant?.waiting === true) {
      if (waitingSessions - replaced >= WAITING_MAX) return 'capacity';
      waitingSessions += 1 - replaced;
      return 'join';
    }
    if (liveSessions - replaced >= room.maxParticipants) return 'capacity';
    liveSessions += 1 - replaced;
    rosterPaged ||= liveSessions > rosterFullMax;
    return 'join';
  });
  return { decisions, rosterPaged };
}
