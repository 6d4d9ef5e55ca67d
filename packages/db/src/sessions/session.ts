import type { ParticipantState, Permission, RoomState, SessionEndReason, Tenant, TrackIdentity } from '@callplane/core';
import type { WakeableDelivery } from '../events/write-events.js';

/** Where a room's media is, and how often that has changed: compared and swapped when it moves. */
export interface RoomPlacement {
  /** A name of MEDIA_NODES; null while the room has no media server. */
  mediaNodeId: string | null;
  mediaGeneration: number;
}

/** A published track as it is stored. */
export interface TrackState extends TrackIdentity {
  muted: boolean;
  /** Where the media server has it: feed and media section; both change when it is published anew after a fault. */
  feedId: string;
  mid: string;
}

/** A live session, its participant and its tracks. */
export interface SessionState {
  sessionId: string;
  participant: ParticipantState;
  startedAt: Date;
  permissions: readonly Permission[];
  /** The signaling instance that holds its connection, or held it last; null once that has let go for a removal. */
  instanceId: string | null;
  /** Counts the connections of this session: whoever holds an older one writes nothing. */
  connection: number;
  /** Since when it has no connection; null while it has one. */
  disconnectedAt: Date | null;
  tracks: TrackState[];
}

/** A room with everybody in it, read in one statement: what a signaling instance compares with what it last told. */
export interface RoomSnapshot extends RoomPlacement {
  tenant: Tenant;
  room: RoomState;
  /** Number of the room's latest event: grows with each join, leave, publish and unpublish. */
  sequence: number;
  sessions: SessionState[];
}

export interface JoinInput {
  tenant: Tenant;
  roomId: string;
  participantId: string;
  tokenId: string;
  permissions: readonly Permission[];
  /** SHA-256 of the resume secret. */
  resumeSecretHash: Uint8Array;
  instanceId: string;
  /** Where the room's media goes if it is nowhere yet. */
  mediaNodeId: string | null;
}

/** Nothing was written unless the outcome is `joined`. */
export type JoinOutcome =
  | {
      outcome: 'joined';
      sessionId: string;
      connection: number;
      /** Sessions of the same participant that this one has ended. */
      supersededSessionIds: string[];
      deliveries: WakeableDelivery[];
    }
  | { outcome: 'room_ended' | 'removed' | 'token_revoked' | 'capacity' | 'not_found' };

export type ResumeOutcome =
  | {
      outcome: 'resumed';
      connection: number;
      /** Whoever held it before: it may still have a dead connection to drop. */
      previousInstanceId: string | null;
      tenant: Tenant;
      roomId: string;
      participantId: string;
      permissions: readonly Permission[];
    }
  | { outcome: 'ended'; reason: SessionEndReason }
  /** There is no such session, or the secret is another one. */
  | { outcome: 'unknown' };

/** A session's connection, as the instance knows it that holds it. */
export interface HeldSession {
  sessionId: string;
  connection: number;
}

export interface EndOutcome {
  /** False when it had ended already, or another connection has it: nothing was written. */
  ended: boolean;
  deliveries: WakeableDelivery[];
}

export interface TracksOutcome {
  /** False when the session has ended or another connection has it: nothing was written. */
  written: boolean;
  deliveries: WakeableDelivery[];
}
