import type { SessionEndReason } from '@callplane/core';
import type { SessionState } from '@callplane/db';

/** A session of this instance, as its room sees it. */
export interface RoomMember {
  readonly sessionId: string;
  readonly participantId: string;
  /** Number of the session's current connection. Each resumption increments it. */
  readonly connectionNumber: number;
  readonly media: {
    /** Whether the member has to know which tracks are published: `autoSubscribe` or choices. */
    readonly wantsTracks: boolean;
    /** The track index has changed. */
    onTracks(): void;
    /** The room's media server went up, down, or is another one. */
    onPlacement(): void;
  };
  /** Ignored before the welcome, which contains what the message says. */
  sendText(text: string): void;
  /** The room shows another state of the member's own session. */
  onOwn(state: SessionState): void;
}

/** Why this instance no longer holds a member's session, according to PostgreSQL. */
export type Departure =
  /** The session has ended, is being removed, or its room is ending. */
  | SessionEndReason
  /** Another instance holds the session. */
  | 'moved'
  /** The session is not among the live ones of a complete read. Its row says why. */
  | 'missing';
