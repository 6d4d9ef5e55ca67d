import { formatTimestamp, joinedAt, leftAt } from '@callplane/core';
import type { ParticipantRow } from '@callplane/db';

/** A participant as the API returns it. */
export function presentParticipant(participant: ParticipantRow, now: Date) {
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
