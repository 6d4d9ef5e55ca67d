import { isOpen, type RoomStatus } from '../rooms/room.js';

export interface JoiningRoom {
  status: RoomStatus;
  maxParticipants: number;
  rosterPaged: boolean;
  /** Live sessions of the room. A session in its grace period keeps its place. */
  liveSessions: number;
}

/** A participant that joins, as its row says. Null: this room has no such participant, or it has no such token. */
interface JoiningParticipant {
  removed: boolean;
  tokenRevoked: boolean;
  latestJoin: number;
  hasLiveSession: boolean;
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
  let { liveSessions } = room;
  // A room stays paged until it is empty.
  let rosterPaged = room.rosterPaged && liveSessions > 0;
  const decisions = candidates.map((candidate): JoinDecision => {
    const refused = refusedAtOnce(candidate);
    if (refused !== null) return refused;
    if (!isOpen(room.status)) return 'room_ended';
    const replaced = candidate.participant?.hasLiveSession === true ? 1 : 0;
    if (liveSessions - replaced >= room.maxParticipants) return 'capacity';
    liveSessions += 1 - replaced;
    rosterPaged ||= liveSessions > rosterFullMax;
    return 'join';
  });
  return { decisions, rosterPaged };
}
