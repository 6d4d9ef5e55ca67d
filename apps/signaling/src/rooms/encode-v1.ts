import type { SessionState } from '@callplane/db';
import type { ServerMessages } from '@callplane/protocol';
import { presentSession, presentTrack, sameExceptTracks, type RoomChange } from './room-change.js';

/** A message about a change in the room, for all participants but `about`: the one that changed. */
export interface MessageV1 {
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
 * The messages of protocol version 1 about changes. A client can apply them one by one: first the departures, then the
 * changes of participants that stayed, then the arrivals.
 */
export function encodeV1(changes: readonly RoomChange[]): MessageV1[] {
  const left: MessageV1[] = [];
  const changed: MessageV1[] = [];
  const joined: MessageV1[] = [];
  for (const { before, after } of changes) {
    if (before !== null && after === null) {
      const { participantId, sessionId } = before;
      left.push({ about: participantId, message: { type: 'participantLeft', participantId, sessionId } });
    } else if (before?.state && after?.state) changed.push(...changesOf(before.state, after.state));
    else if (after?.state) {
      joined.push({
        about: after.participantId,
        message: { type: 'participantJoined', participant: presentSession(after.state) },
      });
    }
  }
  return [...left, ...changed, ...joined];
}

function changesOf(before: SessionState, after: SessionState): MessageV1[] {
  const participantId = after.participant.id;
  const messages: MessageV1['message'][] = [];
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
  if (!sameExceptTracks(before, after)) {
    messages.push({ type: 'participantUpdated', participant: presentSession(after) });
  }
  return messages.map((message) => ({ about: participantId, message }));
}
