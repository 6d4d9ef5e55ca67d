import type { Tenant } from '../api-keys/scopes.js';
import type { RoomState } from '../rooms/room.js';
import { presentLiveRoom } from '../rooms/room.presenter.js';
import type { EventType, NewEvent } from './event.js';
import { roomEvent, type RoomSubject } from './subject.js';

export function roomCreated(tenant: Tenant, room: RoomState): NewEvent {
  return ofRoom('room.created', { tenant, room, now: room.createdAt }, 0);
}

/** The first participants have joined. */
export function roomStarted(subject: RoomSubject, participantCount: number): NewEvent {
  return ofRoom('room.started', subject, participantCount);
}

/** The server has changed the name, the metadata, the capacity or the time-out of the room. */
export function roomUpdated(subject: RoomSubject, participantCount: number): NewEvent {
  return ofRoom('room.updated', subject, participantCount);
}

/** The clean-up of the room is complete. */
export function roomEnded(subject: RoomSubject): NewEvent {
  return ofRoom('room.ended', subject, 0);
}

function ofRoom(type: EventType, subject: RoomSubject, participantCount: number): NewEvent {
  return roomEvent(type, subject, { room: presentLiveRoom(subject.tenant, { ...subject.room, participantCount }) });
}
