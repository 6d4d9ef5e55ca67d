import type { Tenant } from '../api-keys/scopes.js';
import { presentParticipant, type ParticipantState } from '../participants/participant.presenter.js';
import type { RoomState } from '../rooms/room.js';
import { presentRoom } from '../rooms/room.presenter.js';
import type { TrackIdentity } from '../sessions/track.js';
import type { EventType, NewEvent } from './event.js';

/** The room of an event in its state after the change, and the time of the change. */
export interface RoomSubject {
  readonly tenant: Tenant;
  readonly room: RoomState;
  readonly now: Date;
}

/** The session and participant of an event, in their state after the change. */
export interface SessionSubject {
  sessionId: string;
  participant: ParticipantState;
}

/** A session that was just ended, with the tracks that it was publishing. */
export interface EndedSession extends SessionSubject {
  tracks: TrackIdentity[];
}

/** An event of a room. The other modules of this folder decide its `data`. */
export function roomEvent(
  type: EventType,
  { tenant, room, now }: RoomSubject,
  data: NewEvent['data'],
  participantId: string | null = null,
): NewEvent {
  return { type, tenant, roomId: room.id, participantId, createdAt: now, data };
}

/** An event of a session: room, participant and session id, followed by the fields of its type. */
export function sessionEvent(
  type: EventType,
  subject: RoomSubject,
  { sessionId, participant }: SessionSubject,
  fields: NewEvent['data'] = {},
): NewEvent {
  const data = {
    room: presentRoom(subject.tenant, subject.room),
    participant: presentParticipant(participant, subject.now),
    sessionId,
    ...fields,
  };
  return roomEvent(type, subject, data, participant.id);
}
