import { Prisma } from '../generated/client.js';

/** The columns of a `ParticipantState`; the table must have the name or alias `participants`. */
export const PARTICIPANT_COLUMNS = Prisma.sql`participants.id, participants.room_id AS "roomId",
  participants.external_id AS "externalId", participants.name, participants.metadata, participants.role,
  participants.created_at AS "createdAt", participants.token_expires_at AS "tokenExpiresAt",
  participants.connected_at AS "connectedAt", participants.left_at AS "leftAt"`;

/**
 * Whether an erasure was requested for the event's participant, so that the event is erased once its deliveries finish.
 * The events table must have the alias `v`.
 */
export const isErasureRequested = Prisma.sql`
  EXISTS (SELECT 1 FROM participant_erasures x WHERE x.participant_id = v.participant_id)`;
