/** What the stream of changes sends: docs/api.md. */
export type Kind = 'rooms' | 'participants' | 'operations';

export interface Change {
  kind: Kind;
  roomId?: string | null;
  participantId?: string | null;
}

/** The reads that each kind of change makes outdated. */
const READS: Record<Kind, readonly string[]> = {
  rooms: ['listRooms', 'readRoom', 'readRoomOperation', 'listEvents', 'listParticipants', 'listTokens'],
  participants: [
    ...['listParticipants', 'readParticipant', 'listRoomSessions', 'listParticipantSessions'],
    ...['readRoom', 'listTokens', 'listEvents', 'readParticipantOperation'],
  ],
  operations: ['readRoomOperation', 'readParticipantOperation'],
};

/** @returns whether a change makes the answer to a read outdated */
export function isTouched(operation: string, input: { roomId?: string }, change: Change): boolean {
  if (!READS[change.kind].includes(operation)) return false;
  return input.roomId === undefined || typeof change.roomId !== 'string' || input.roomId === change.roomId;
}

/** The shortest time between two reads of the same thing, in milliseconds. */
const PACE_MS = 1_000;
const LIST_PACE_MS = 2_000;

export function paceOf(operation: string): number {
  return operation === 'listRooms' ? LIST_PACE_MS : PACE_MS;
}
