import { Prisma } from '../generated/client.js';

/**
 * How long an observation of a media server or TURN server is valid. An older one means that the workers are down or
 * that the server is no longer configured.
 */
const VALID_MS = 30_000;

/** Whether a row of observations is valid; its table has the column `checked_at`. */
export const isObservationValid = Prisma.sql`checked_at > now() - ${VALID_MS}::int * interval '1 millisecond'`;
