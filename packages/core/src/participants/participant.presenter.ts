import { formatTimestamp } from '../time.js';
import { joinedAt, leftAt, type Presence } from './participant.js';

/** A participant as stored; `joinedAt` and `leftAt` derive the presence that the API shows. */
export interface ParticipantState extends Presence {
  id: string;
  roomId: string;
  externalId: string | null;
  name: string;
  metadata: Record<string, unknown>;
  role: string;
}

/** Presents a participant for the API and for events. */
export function presentParticipant(participant: ParticipantState, now: Date) {
  const left = leftAt(participant, now);
  return {
    id: participant.id,
    roomId: participant.roomId,
    externalId: participant.externalId,
    name: participant.name,
    metadata: participant.metadata,
    role: participant.role,
    joinedAt: formatTimestamp(joinedAt(participant)),
    leftAt: left === null ? null : formatTimestamp(left),
  };
}
