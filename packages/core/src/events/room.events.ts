import type { Tenant } from '../api-keys/scopes.js';
import type { RoomState } from '../rooms/room.js';
import { presentRoom } from '../rooms/room.presenter.js';
import type { NewEvent } from './event.js';
import { roomEvent, type RoomSubject } from './subject.js';

export function roomCreated(tenant: Tenant, room: RoomState): NewEvent {
  return roomEvent('room.created', { tenant, room, now: room.createdAt }, { room: presentRoom(tenant, room) });
}

/** The first participant has joined. */
export function roomStarted(subject: RoomSubject): NewEvent {
  return roomEvent('room.started', subject, { room: presentRoom(subject.tenant, subject.room) });
}

/** The server has changed the name, the metadata or the capacity of the room. */
export function roomUpdated(subject: RoomSubject): NewEvent {
  return roomEvent('room.updated', subject, { room: presentRoom(subject.tenant, subject.room) });
}

/** The clean-up of the room is complete. */
export function roomEnded(subject: RoomSubject): NewEvent {
  return roomEvent('room.ended', subject, { room: presentRoom(subject.tenant, subject.room) });
}
