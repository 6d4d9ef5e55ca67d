import type { RoomSnapshot, SessionState } from '@callplane/db';
import type { RemoteParticipant, ServerMessages, Track } from '@callplane/protocol';

/** What the others are told when a room has changed. `about`: the participant that it concerns, who is not told. */
export interface RoomChange {
  about: string;
  message: ServerMessages[
    | 'participantJoined'
    | 'participantUpdated'
    | 'participantLeft'
    | 'trackPublished'
    | 'trackUnpublished'
    | 'trackUpdated'];
}

/**
 * What turns one state of a room into another, in an order that can be applied message by message: those who left, then
 * what changed about those who stayed, then those who came.
 */
export function diffRoom(
  before: Pick<RoomSnapshot, 'sessions'> | null,
  after: Pick<RoomSnapshot, 'sessions'>,
): RoomChange[] {
  const known = new Map((before?.sessions ?? []).map((session) => [session.sessionId, session]));
  const remaining = new Set(after.sessions.map(({ sessionId }) => sessionId));
  const left: RoomChange[] = [];
  for (const { sessionId, participant } of known.values()) {
    if (remaining.has(sessionId)) continue;
    left.push({
      about: participant.id,
      message: { type: 'participantLeft', participantId: participant.id, sessionId },
    });
  }
  const changed: RoomChange[] = [];
  const joined: RoomChange[] = [];
  for (const session of after.sessions) {
    const was = known.get(session.sessionId);
    if (was !== undefined) changed.push(...diffSession(was, session));
    else {
      joined.push({
        about: session.participant.id,
        message: { type: 'participantJoined', participant: presentSession(session) },
      });
    }
  }
  return [...left, ...changed, ...joined];
}

/** A session as the others see it. */
export function presentSession(session: SessionState): RemoteParticipant {
  const { participant } = session;
  return {
    participantId: participant.id,
    sessionId: session.sessionId,
    name: participant.name,
    externalId: participant.externalId,
    metadata: participant.metadata,
    joinedAt: session.startedAt.toISOString(),
    connected: session.disconnectedAt === null,
    tracks: session.tracks.map(presentTrack),
  };
}

function presentTrack({ trackId, kind, source, muted }: Track): Track {
  return { trackId, kind, source, muted };
}

function diffSession(before: SessionState, after: SessionState): RoomChange[] {
  const participantId = after.participant.id;
  const messages: RoomChange['message'][] = [];
  const known = new Map(before.tracks.map((track) => [track.trackId, track]));
  const remaining = new Set(after.tracks.map(({ trackId }) => trackId));
  for (const { trackId } of before.tracks) {
    if (!remaining.has(trackId)) messages.push({ type: 'trackUnpublished', participantId, trackId });
  }
  for (const track of after.tracks) {
    const was = known.get(track.trackId);
    const message = { participantId, track: presentTrack(track) };
    if (was === undefined) messages.push({ type: 'trackPublished', ...message });
    else if (was.kind !== track.kind || was.source !== track.source) {
      messages.push({ type: 'trackUnpublished', participantId, trackId: track.trackId });
      messages.push({ type: 'trackPublished', ...message });
    } else if (was.muted !== track.muted) messages.push({ type: 'trackUpdated', ...message });
  }
  if (
    (before.disconnectedAt === null) !== (after.disconnectedAt === null) ||
    before.participant.name !== after.participant.name ||
    before.participant.externalId !== after.participant.externalId ||
    !sameJson(before.participant.metadata, after.participant.metadata)
  ) {
    messages.push({ type: 'participantUpdated', participant: presentSession(after) });
  }
  return messages.map((message) => ({ about: participantId, message }));
}

/** Both come from the same column, whose keys PostgreSQL keeps in one order. */
function sameJson(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
