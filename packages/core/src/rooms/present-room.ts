import type { Tenant } from '../api-keys/scopes.js';
import { formatTimestamp } from '../time.js';
import type { RoomStatus } from './room.js';

/** A room as it is stored; its project is that of its environment. */
export interface RoomState {
  id: string;
  name: string;
  metadata: Record<string, unknown>;
  status: RoomStatus;
  maxParticipants: number;
  createdAt: Date;
  startedAt: Date | null;
  endedAt: Date | null;
}

/** A room as the API returns it and as events hold it. */
export function presentRoom(tenant: Tenant, room: RoomState) {
  return {
    id: room.id,
    projectId: tenant.projectId,
    environmentId: tenant.environmentId,
    name: room.name,
    metadata: room.metadata,
    status: room.status,
    maxParticipants: room.maxParticipants,
    createdAt: formatTimestamp(room.createdAt),
    startedAt: room.startedAt === null ? null : formatTimestamp(room.startedAt),
    endedAt: room.endedAt === null ? null : formatTimestamp(room.endedAt),
  };
}
