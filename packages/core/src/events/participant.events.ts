import type { Permission, SessionEndReason } from '../participants/participant.js';
import { presentParticipant, type ParticipantState } from '../participants/participant.presenter.js';
import { presentRoom } from '../rooms/room.presenter.js';
import type { NewEvent } from './event.js';
import { roomEvent, sessionEvent, type EndedSession, type RoomSubject, type SessionSubject } from './subject.js';
import { trackUnpublished } from './track.events.js';

export function participantJoined(subject: RoomSubject, session: SessionSubject): NewEvent {
  return sessionEvent('participant.joined', subject, session);
}

/** All events of a session that has ended: `track.unpublished` for each of its tracks, then `participant.left`. */
export function participantLeft(subject: RoomSubject, ended: EndedSession, reason: SessionEndReason): NewEvent[] {
  return [
    ...ended.tracks.map((track) => trackUnpublished(subject, ended, track)),
    sessionEvent('participant.left', subject, ended, { reason }),
  ];
}

/**
 * The server has changed a participant. A participant may be changed before it joins and after it left.
 * @param sessionId the participant's live session, if it has one.
 * @param permissions all permissions of the participant from now on.
 */
export function participantUpdated(
  subject: RoomSubject,
  {
    participant,
    sessionId,
    permissions,
  }: { participant: ParticipantState; sessionId: string | null; permissions: readonly Permission[] },
): NewEvent {
  const data = {
    room: presentRoom(subject.tenant, subject.room),
    participant: presentParticipant(participant, subject.now),
    sessionId,
    permissions,
  };
  return roomEvent('participant.updated', subject, data, participant.id);
}
