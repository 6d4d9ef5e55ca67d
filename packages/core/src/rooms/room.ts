import type { Tenant } from '../api-keys/api-key.js';

/** `created` → `active` (first join) → `ending` (end accepted) → `ended` (clean-up complete). */
export const ROOM_STATUSES = ['created', 'active', 'ending', 'ended'] as const;
export type RoomStatus = (typeof ROOM_STATUSES)[number];

/** A room as stored; its project is the project of its environment. */
export interface RoomState {
  id: string;
  name: string;
  metadata: Record<string, unknown>;
  status: RoomStatus;
  maxParticipants: number;
  /** How long the room may be empty until it ends. Null: the setting of the deployment. */
  emptyTimeoutSeconds: number | null;
  createdAt: Date;
  startedAt: Date | null;
  endedAt: Date | null;
}

export interface LiveRoomState extends RoomState {
  /** Live sessions, also those within their grace period. */
  participantCount: number;
}

export const ROOM_NAME_LENGTH_MAX = 120;
export const ROOM_MAX_PARTICIPANTS_DEFAULT = 100;
export const ROOM_MAX_PARTICIPANTS_MAX = 100_000;
export const ROOM_EMPTY_TIMEOUT_SECONDS = { min: 60, max: 604_800 } as const;

/** The statuses in which tokens are issued and joins are accepted; both stop with `ending`. */
export const OPEN_ROOM_STATUSES: readonly RoomStatus[] = ['created', 'active'];

export function isOpen(status: RoomStatus): boolean {
  return OPEN_ROOM_STATUSES.includes(status);
}

export function afterJoin<Room extends { status: RoomStatus; startedAt: Date | null }>(room: Room, now: Date): Room {
  return room.status === 'created' ? { ...room, status: 'active', startedAt: now } : room;
}

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
    createdAt: room.createdAt.toISOString(),
    startedAt: room.startedAt === null ? null : room.startedAt.toISOString(),
    endedAt: room.endedAt === null ? null : room.endedAt.toISOString(),
  };
}
