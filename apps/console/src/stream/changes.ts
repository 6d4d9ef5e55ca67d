/** What the stream of changes sends: docs/decisions/0047-console-sessions-and-the-stream.md. */
export type Kind = 'rooms' | 'participants' | 'operations' | 'endpoints' | 'deliveries' | 'recoveries';

export interface Change {
  kind: Kind;
  roomId?: string | null;
  participantId?: string | null;
  /** Null: any endpoint. */
  endpointIds?: string[] | null;
}

/** The fields of an operation's input that a change is compared with. */
interface Input {
  roomId?: string;
  endpointId?: string;
}

/** The reads that each kind of change makes outdated. */
const READS: Record<Kind, readonly string[]> = {
  rooms: ['readOverview', 'listRooms', 'readRoom', 'readRoomOperation', 'listEvents', 'listParticipants', 'listTokens'],
  participants: [
    ...['readOverview', 'listParticipants', 'readParticipant', 'listRoomSessions', 'listParticipantSessions'],
    ...['listTokens', 'listEvents', 'readParticipantOperation'],
  ],
  operations: ['readRoomOperation', 'readParticipantOperation'],
  endpoints: ['readOverview', 'listWebhooks', 'readWebhook'],
  deliveries: ['readOverview', 'listDeliveries', 'listAllDeliveries', 'readDelivery', 'listAttempts'],
  recoveries: ['listRecoveries', 'readRecovery'],
};

/** @returns whether a change makes the answer to a read outdated */
export function isTouched(operation: string, input: Input, change: Change): boolean {
  if (!READS[change.kind].includes(operation)) return false;
  if (input.roomId !== undefined && typeof change.roomId === 'string') return input.roomId === change.roomId;
  if (change.kind === 'deliveries' && input.endpointId !== undefined && Array.isArray(change.endpointIds)) {
    return change.endpointIds.includes(input.endpointId);
  }
  return true;
}

/** The shortest time between two reads of the same thing, in milliseconds; the default is `PACE_MS`. */
const PACES: Readonly<Record<string, number>> = { readOverview: 5_000, listRooms: 2_000, listAllDeliveries: 2_000 };
const PACE_MS = 1_000;

export function paceOf(operation: string): number {
  return PACES[operation] ?? PACE_MS;
}
