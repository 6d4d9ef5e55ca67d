import { formatTimestamp, type Tenant } from '@callplane/core';
import type { RoomRow } from '@callplane/db';

/** A room as the API returns it. */
export function presentRoom(tenant: Tenant, room: RoomRow) {
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
