import {
  presentParticipant,
  presentRoom,
  presentTrack,
  type ParticipantState,
  type RoomState,
  type SessionEndReason,
  type Tenant,
  type TrackIdentity,
} from '@callplane/core';
import type { NewEvent } from '../events/write-events.js';

/** Whose events these are, as it is from then on. */
export interface SessionSubject {
  sessionId: string;
  participant: ParticipantState;
}

/** A session that was just ended, with what it was publishing. */
export interface EndedSession extends SessionSubject {
  tracks: TrackIdentity[];
}

/** Makes the events of one room at one moment; each names its resources as the API returns them. */
export function sessionEvents(tenant: Tenant, room: RoomState, now: Date) {
  const shownRoom = presentRoom(tenant, room);
  const about = ({ sessionId, participant }: SessionSubject) => ({
    room: shownRoom,
    participant: presentParticipant(participant, now),
    sessionId,
  });
  const track = (
    type: 'track.published' | 'track.unpublished',
    subject: SessionSubject,
    of: TrackIdentity,
  ): NewEvent => ({
    type,
    data: { ...about(subject), track: presentTrack(of) },
  });
  return {
    started: (): NewEvent => ({ type: 'room.started', data: { room: shownRoom } }),
    joined: (subject: SessionSubject): NewEvent => ({ type: 'participant.joined', data: about(subject) }),
    published: (subject: SessionSubject, of: TrackIdentity) => track('track.published', subject, of),
    unpublished: (subject: SessionSubject, of: TrackIdentity) => track('track.unpublished', subject, of),
    /** What it was publishing ends before it leaves. */
    left: (ended: EndedSession, reason: SessionEndReason): NewEvent[] => [
      ...ended.tracks.map((of) => track('track.unpublished', ended, of)),
      { type: 'participant.left', data: { ...about(ended), reason } },
    ],
  };
}
