import { isOpen, type RoomStatus } from '../rooms/room.js';

export interface JoiningRoom {
  status: RoomStatus;
  maxParticipants: number;
  /** Whether clients get the roster in pages. */
  rosterPaged: boolean;
  /** Live sessions of the room. Those in their grace period keep their place. */
  liveSessions: number;
}

/** A participant that joins, as its row says. Null: this room has no such participant, or it has no such token. */
interface JoiningParticipant {
  removed: boolean;
  tokenRevoked: boolean;
  /** Number of the participant's latest admitted join. */
  latestJoin: number;
  hasLiveSession: boolean;
}

export interface JoinCandidate {
  participant: JoiningParticipant | null;
  /** A join without a number is never `overtaken`. */
  joinNumber?: number | undefined;
  /** Whether the client can show a room whose roster is paged. */
  canPage: boolean;
}

export type JoinDecision =
  | 'join'
  | 'not_found'
  | 'removed'
  | 'token_revoked'
  | 'overtaken'
  | 'room_ended'
  | 'capacity'
  | 'too_large';

export interface JoinDecisions {
  /** In the order of the candidates. */
  decisions: JoinDecision[];
  /** Whether the roster of the room is paged after these joins. */
  rosterPaged: boolean;
}

/** Whether a join can be decided without its room. */
export function refusedAtOnce({ participant, joinNumber }: JoinCandidate): JoinDecision | null {
  if (participant === null) return 'not_found';
  if (participant.removed) return 'removed';
  if (participant.tokenRevoked) return 'token_revoked';
  // A later join of this participant may have committed already; this one must not supersede it.
  return joinNumber !== undefined && joinNumber < participant.latestJoin ? 'overtaken' : null;
}

/**
 * Decides joins of one room, which all see the same state, in the order of their arrival. No participant may have two
 * of them.
 * @param rosterFullMax the roster becomes paged when the room has more live sessions than this.
 */
export function decideJoins(
  room: JoiningRoom,
  candidates: readonly JoinCandidate[],
  rosterFullMax: number,
): JoinDecisions {
  // A room stays paged until it is empty.
  const wasPaged = room.rosterPaged && room.liveSessions > 0;
  const first = decideOnce(room, candidates, wasPaged, rosterFullMax);
  if (wasPaged || !first.rosterPaged) return first;
  // The joins that cannot page come before the one that makes the room paged. They are refused, too, which leaves their
  // places to others.
  return decideOnce(room, candidates, true, rosterFullMax);
}

function decideOnce(
  room: JoiningRoom,
  candidates: readonly JoinCandidate[],
  isPaged: boolean,
  rosterFullMax: number,
): JoinDecisions {
  let { liveSessions } = room;
  let rosterPaged = isPaged;
  const decisions = candidates.map((candidate): JoinDecision => {
    const refused = refusedAtOnce(candidate);
    if (refused !== null) return refused;
    if (!isOpen(room.status)) return 'room_ended';
    const replaced = candidate.participant?.hasLiveSession === true ? 1 : 0;
    if (liveSessions - replaced >= room.maxParticipants) return 'capacity';
    const after = liveSessions - replaced + 1;
    if ((rosterPaged || after > rosterFullMax) && !candidate.canPage) return 'too_large';
    if (after > rosterFullMax) rosterPaged = true;
    liveSessions = after;
    return 'join';
  });
  return { decisions, rosterPaged };
}
