import type { Tenant } from '../api-keys/scopes.js';
import { formatTimestamp } from '../time.js';
import type { LiveRoomState, RoomState } from './room.js';

/** Presents a room for the API and for its own events. */
export function presentLiveRoom(tenant: Tenant, room: LiveRoomState) {
  return { ...presentRoom(tenant, room), participantCount: room.participantCount };
}

/** Presents a room for clients, and for events of its participants, which would count them each time. */
export function presentRoom(tenant: Tenant, room: RoomState) {
  return {
    id: room.id,
    projectId: tenant.projectId,
    environmentId: tenant.environmentId,
    name: room.name,
    metadata: room.metadata,
    status: room.status,
    maxParticipants: room.maxParticipants,
    emptyTimeoutSeconds: room.emptyTimeoutSeconds,
    createdAt: formatTimestamp(room.createdAt),
    startedAt: room.startedAt === null ? null : formatTimestamp(room.startedAt),
    endedAt: room.endedAt === null ? null : formatTimestamp(room.endedAt),
  };
}
