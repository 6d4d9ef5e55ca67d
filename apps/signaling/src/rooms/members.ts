import type { SessionEndReason } from '@callplane/core';
import type { SessionState } from '@callplane/db';
import type { RoomChange } from './room-change.js';

/** A session of this instance, as its room sees it. */
export interface RoomMember {
  readonly sessionId: string;
  readonly participantId: string;
  /** Number of the session's current connection. Each resumption increments it. */
  readonly connectionNumber: number;
  /** Whether the member has to know which tracks are published: `autoSubscribe` or choices. */
  readonly wantsTracks: boolean;
  /** Ignored before the welcome, which contains what the message says. */
  sendText(text: string): void;
  /** The room shows another state of the member's own session. */
  onOwn(state: SessionState): void;
  /** The track index has changed. */
  onTracks(): void;
  /** The room's media server went up, down, or is another one. */
  onPlacement(): void;
}

/** Why this instance no longer holds a member's session, according to PostgreSQL. */
export type Departure =
  /** The session has ended, is being removed, or its room is ending. */
  | SessionEndReason
  /** Another instance holds the session. */
  | 'moved'
  /** The session is not among the live ones of a complete read. Its row says why. */
  | 'missing';

/** The members of a room, by session and by participant. */
export class Members {
  readonly #ofSession = new Map<string, RoomMember>();
  readonly #ofParticipant = new Map<string, Set<RoomMember>>();

  get size(): number {
    return this.#ofSession.size;
  }

  /** A copy, so that members may be removed meanwhile. */
  get all(): RoomMember[] {
    return [...this.#ofSession.values()];
  }

  get(sessionId: string): RoomMember | undefined {
    return this.#ofSession.get(sessionId);
  }

  of(participantId: string): Iterable<RoomMember> {
    return this.#ofParticipant.get(participantId) ?? [];
  }

  /** Tells the members whose own sessions have changed. */
  showOwn(changes: readonly RoomChange[]): void {
    for (const { after } of changes) if (after?.state) this.get(after.sessionId)?.onOwn(after.state);
  }

  add(member: RoomMember): void {
    this.#ofSession.set(member.sessionId, member);
    const members = this.#ofParticipant.get(member.participantId);
    if (members === undefined) this.#ofParticipant.set(member.participantId, new Set([member]));
    else members.add(member);
  }

  remove(member: RoomMember): void {
    if (this.#ofSession.get(member.sessionId) === member) this.#ofSession.delete(member.sessionId);
    const members = this.#ofParticipant.get(member.participantId);
    members?.delete(member);
    if (members?.size === 0) this.#ofParticipant.delete(member.participantId);
  }
}
