import type {
  OtherSession,
  ParticipantState,
  Permission,
  SessionEndReason,
  Tenant,
  TrackIdentity,
} from '@callplane/core';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';

/** Media server of a room, and a counter that each move increments for its compare-and-swap. */
export interface RoomPlacement {
  /** A name of MEDIA_NODES; null while the room has no media server. */
  mediaNodeId: string | null;
  mediaGeneration: number;
}

/** All media servers of a room. */
export interface RoomNodes extends RoomPlacement {
  /** Servers that carry sessions of the room besides. */
  furtherNodeIds: string[];
}

export interface TrackState extends TrackIdentity {
  muted: boolean;
  /** Feed and media section on the media server. Both change with a publication after a fault. */
  feedId: string;
  mid: string;
  /**
   * Id of the header extension that carries the level of audio, or the orientation of video. Another media server that
   * gets the track has to know it.
   */
  extensionId?: number | undefined;
}

export interface SessionState {
  sessionId: string;
  /** The room's version with the latest visible change of the session. */
  version: number;
  participant: ParticipantState;
  startedAt: Date;
  permissions: readonly Permission[];
  /** Holds the connection, or held it last. Null after the instance has released the session for its clean-up. */
  instanceId: string | null;
  /** Connection number of the session: a connection with an older number cannot write (fencing). */
  connection: number;
  disconnectedAt: Date | null;
  /** Whether it is in the lobby: no other participant sees it. */
  waiting: boolean;
  tracks: TrackState[];
}

export interface JoinInput {
  tenant: Tenant;
  roomId: string;
  participantId: string;
  tokenId: string;
  /** Permissions of the token. Permissions set by the server override them. */
  permissions: readonly Permission[];
  /** SHA-256 of the resume secret. */
  resumeSecretHash: Uint8Array;
  /** Null for a session that begins without a connection. */
  instanceId: string | null;
  mediaNodeId: string | null | Promise<string | null>;
  movedFrom?: OtherSession;
  /**
   * Called right before the join is written, and again before the commit if it needs a transaction. A client that has
   * gone by then may have joined elsewhere, so its join writes nothing.
   */
  isWaiting?: () => boolean;
}

export type ResumeOutcome =
  | {
      outcome: 'resumed';
      connection: number;
      /** The instance that held the session before, which may still have a dead connection to drop. */
      previousInstanceId: string | null;
      tenant: Tenant;
      roomId: string;
      participantId: string;
      permissions: readonly Permission[];
      /** Still being read, so that the caller can read the room at the same time. */
      state: Promise<SessionState>;
      /** Where its media is, as the previous holder wrote it; null without media. */
      media: unknown;
    }
  | { outcome: 'ended'; reason: SessionEndReason }
  /** The session exceeds its rate of resumptions; its connection stays as it is. */
  | { outcome: 'too_many'; waitMs: number }
  | { outcome: 'unknown' };

export interface HeldSession {
  sessionId: string;
  connection: number;
}

export interface TracksOutcome {
  /** False when the session has ended, or another connection holds it: nothing was written. */
  written: boolean;
  deliveries: DueEndpoint[];
}
