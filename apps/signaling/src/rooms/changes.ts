import type { SessionState } from '@callplane/db';
import { participantText, presentTrack, sameExceptTracks, sameTracks, type RoomChange } from './room-change.js';

/** An entry of a `changes` message as text. */
export type ChangeText = string;

/** Joins entries to one `changes` message. @returns null without entries. */
export function changesText(entries: readonly ChangeText[]): string | null {
  return entries.length === 0 ? null : `{"type":"changes","changes":[${entries.join(',')}]}`;
}

export function participantEntry(session: SessionState): ChangeText {
  return `{"kind":"participant","participant":${participantText(session)}}`;
}

/** @param kind `left`: the participant left the room. `hidden`: it is in the room, but no longer shown. */
export function goneEntry(
  kind: 'left' | 'hidden',
  { participantId, sessionId }: { participantId: string; sessionId: string },
): ChangeText {
  return JSON.stringify({ kind, participantId, sessionId });
}

/** The new state of a participant whose earlier state the client knows; null if it looks the same. */
export function changedEntry(before: SessionState, after: SessionState): ChangeText | null {
  if (!sameExceptTracks(before, after)) return participantEntry(after);
  if (sameTracks(before, after)) return null;
  const { participant, sessionId, tracks } = after;
  return JSON.stringify({ kind: 'tracks', participantId: participant.id, sessionId, tracks: tracks.map(presentTrack) });
}

/** The entries about changes in a room in which everyone is shown: departures, changes, arrivals. */
export function changeEntries(changes: readonly RoomChange[]): ChangeText[] {
  const left: ChangeText[] = [];
  const changed: (ChangeText | null)[] = [];
  const joined: ChangeText[] = [];
  for (const { before, after } of changes) {
    if (after?.state && before?.state) changed.push(changedEntry(before.state, after.state));
    else if (after?.state) joined.push(participantEntry(after.state));
    else if (before !== null && after === null) left.push(goneEntry('left', before));
  }
  return [...left, ...changed.filter((entry) => entry !== null), ...joined];
}
