import type { Tenant } from '../api-keys/api-key.js';
import { optionDefaults, optionsOf } from '../options/option-table.js';
import { ROOM_OPTIONS, type RoomOptions } from './room-options.js';

/** `created` → `active` (first join) → `ending` (end accepted) → `ended` (clean-up complete). */
export const ROOM_STATUSES = ['created', 'active', 'ending', 'ended'] as const;
export type RoomStatus = (typeof ROOM_STATUSES)[number];

/** A room as stored; its project is the project of its environment. */
export interface RoomState extends RoomOptions {
  id: string;
  name: string;
  metadata: Record<string, unknown>;
  status: RoomStatus;
  createdAt: Date;
  startedAt: Date | null;
  endedAt: Date | null;
  /** Since when at least one recording runs; null while none does. */
  recordingSince: Date | null;
}

export interface LiveRoomState extends RoomState {
  /** Live sessions, also those within their grace period. */
  participantCount: number;
}

export const ROOM_NAME_LENGTH_MAX = 120;

/** The statuses in which tokens are issued and joins are accepted; both stop with `ending`. */
export const OPEN_ROOM_STATUSES: readonly RoomStatus[] = ['created', 'active'];

export function isOpen(status: RoomStatus): boolean {
  return OPEN_ROOM_STATUSES.includes(status);
}

export function afterJoin<Room extends { status: RoomStatus; startedAt: Date | null }>(room: Room, now: Date): Room {
  return room.status === 'created' ? { ...room, status: 'active', startedAt: now } : room;
}

/** A room at its creation. */
export function newRoom(fields: Pick<RoomState, 'id' | 'name' | 'createdAt'> & Partial<RoomState>): RoomState {
  return {
    metadata: {},
    status: 'created',
    ...optionDefaults(ROOM_OPTIONS),
    startedAt: null,
    endedAt: null,
    recordingSince: null,
    ...fields,
  };
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
    ...optionsOf(ROOM_OPTIONS, room),
    createdAt: room.createdAt.toISOString(),
    startedAt: room.startedAt === null ? null : room.startedAt.toISOString(),
    endedAt: room.endedAt === null ? null : room.endedAt.toISOString(),
    recordingSince: room.recordingSince === null ? null : room.recordingSince.toISOString(),
  };
}
