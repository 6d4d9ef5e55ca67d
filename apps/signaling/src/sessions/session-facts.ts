import type { Permission, Tenant } from '@callplane/core';
import type { CloseReason } from '@callplane/protocol';

/** Why a session is over. */
export interface SessionOver {
  reason: CloseReason;
  /** For the log. */
  cause: string;
}

export interface SessionFacts {
  sessionId: string;
  tenant: Tenant;
  roomId: string;
  participantId: string;
  permissions: readonly Permission[];
  connectionNumber: number;
  autoSubscribe: boolean;
}
