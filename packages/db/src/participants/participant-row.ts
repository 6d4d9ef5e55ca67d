import { Prisma } from '../generated/client.js';

/** The columns of a `ParticipantState`, of a table that is called `participants` here. */
export const PARTICIPANT_COLUMNS = Prisma.sql`participants.id, participants.room_id AS "roomId",
  participants.external_id AS "externalId", participants.name, participants.metadata, participants.role,
  participants.created_at AS "createdAt", participants.token_expires_at AS "tokenExpiresAt",
  participants.connected_at AS "connectedAt", participants.left_at AS "leftAt"`;
