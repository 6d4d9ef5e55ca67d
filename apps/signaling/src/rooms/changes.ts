import { PARTICIPANT_ROLE, type SessionEndReason } from '@callplane/core';
import type { SessionState } from '@callplane/db';
import type { RemoteParticipant, Track } from '@callplane/protocol';

/**
 * A live session as this instance knows it. Immutable: a change replaces the entry, so that values derived from an
 * entry can be cached with it.
 */
export interface SessionEntry {
  readonly sessionId: string;
  readonly participantId: string;
  readonly connection: number;
  readonly instanceId: string | null;
  readonly version: number;
  /** Null for a viewer of a paged room, who is only counted. */
  readonly state: SessionState | null;
}

/** A session of this instance, as its room sees it. */
export interface RoomMember {
  readonly sessionId: string;
  readonly participantId: string;
  readonly connectionNumber: number;
  readonly media: {
    /** Whether the member has to know which tracks are published: `autoSubscribe` or choices. */
    readonly followsTracks: boolean;
    onTracks(): void;
    onPlacement(): void;
  };
  /** Ignored before the welcome, which contains the same facts. */
  sendText(text: string): void;
  /** @returns false if the member reads too slowly to get it */
  sendPart(text: string): boolean;
  onOwn(state: SessionState): void;
  onAdmitted(): void;
}

/** Why this instance no longer holds a member's session, according to PostgreSQL. */
export type Departure =
  /** The session has ended, is being removed, or its room is ending. */
  | SessionEndReason
  /** Another instance has resumed it. */
  | 'elsewhere'
  /** The session is not among the live ones of a complete read. Its row says why. */
  | 'missing';

/** A session before and after a change; null when it was not in the room, or is no longer. */
export interface RoomChange {
  readonly before: SessionEntry | null;
  readonly after: SessionEntry | null;
  /** Why the session is over; null if it is not, or if the read does not say why. */
  readonly gone: SessionEndReason | null;
}

export function subjectOf({ before, after }: RoomChange): SessionEntry {
  const entry = after ?? before;
  if (entry === null) throw new Error('a change of no session');
  return entry;
}

export function isViewer({ tracks, participant }: SessionState): boolean {
  return tracks.length === 0 && Object.keys(participant.metadata).length === 0;
}

function presentSession(session: SessionState): RemoteParticipant {
  const { participant } = session;
  return {
    participantId: participant.id,
    sessionId: session.sessionId,
    name: participant.name,
    externalId: participant.externalId,
    ...(participant.role === PARTICIPANT_ROLE ? {} : { role: participant.role }),
    metadata: participant.metadata,
    joinedAt: session.startedAt.toISOString(),
    connected: session.disconnectedAt === null,
    tracks: session.tracks.map(presentTrack),
  };
}

function presentTrack({ trackId, kind, source, muted }: Track): Track {
  return { trackId, kind, source, muted };
}

export function participantText(session: SessionState): string {
  let text = TEXTS.get(session);
  if (text === undefined) {
    text = JSON.stringify(presentSession(session));
    TEXTS.set(session, text);
  }
  return text;
}

const TEXTS = new WeakMap<SessionState, string>();

function textWithoutTracks(session: SessionState): string {
  return JSON.stringify({ ...presentSession(session), tracks: [] });
}

/** Joins entries to one `changes` message. @returns null without entries. */
export function changesText(entries: readonly string[]): string | null {
  return entries.length === 0 ? null : `{"type":"changes","changes":[${entries.join(',')}]}`;
}

export function participantEntry(session: SessionState): string {
  return `{"kind":"participant","participant":${participantText(session)}}`;
}

/** @param kind `left`: the participant left the room. `hidden`: it is in the room, but no longer shown. */
export function goneEntry(
  kind: 'left' | 'hidden',
  { participantId, sessionId }: { participantId: string; sessionId: string },
): string {
  return JSON.stringify({ kind, participantId, sessionId });
}

/** The new state of a participant whose earlier state the client knows; null if it looks the same. */
export function changedEntry(before: SessionState, after: SessionState): string | null {
  if (participantText(before) === participantText(after)) return null;
  if (textWithoutTracks(before) !== textWithoutTracks(after)) return participantEntry(after);
  const { participant, sessionId, tracks } = after;
  return JSON.stringify({ kind: 'tracks', participantId: participant.id, sessionId, tracks: tracks.map(presentTrack) });
}

export function changeEntries(changes: readonly RoomChange[]): string[] {
  const left: string[] = [];
  const changed: (string | null)[] = [];
  const joined: string[] = [];
  for (const { before, after } of changes) {
    if (after?.state && before?.state) changed.push(changedEntry(before.state, after.state));
    else if (after?.state) joined.push(participantEntry(after.state));
    else if (before !== null && after === null) left.push(goneEntry('left', before));
  }
  return [...left, ...changed.filter((entry) => entry !== null), ...joined];
}
