import { presentTrack, type TrackIdentity } from '../sessions/track.js';
import type { NewEvent } from './event.js';
import { sessionEvent, type RoomSubject, type SessionSubject } from './subject.js';

export function trackPublished(subject: RoomSubject, session: SessionSubject, track: TrackIdentity): NewEvent {
  return sessionEvent('track.published', subject, session, { track: presentTrack(track) });
}

export function trackUnpublished(subject: RoomSubject, session: SessionSubject, track: TrackIdentity): NewEvent {
  return sessionEvent('track.unpublished', subject, session, { track: presentTrack(track) });
}

/** The server has muted a track. Mutes by the participant itself have no event. */
export function trackMuted(subject: RoomSubject, session: SessionSubject, track: TrackIdentity): NewEvent {
  return sessionEvent('track.muted', subject, session, { track: presentTrack(track) });
}
