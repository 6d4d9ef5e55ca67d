import { newId, type Tenant } from '@callplane/core';

/**
 * Rows for `prisma.<model>.create`, with every column that the schema demands. `more` has further columns, or other
 * values.
 */

type Owner = Pick<Tenant, 'environmentId'>;

export const roomRow = <More extends object>({ environmentId }: Owner, more?: More) => ({
  id: newId('room'),
  environmentId,
  name: 'Room',
  metadata: {},
  status: 'created' as string,
  maxParticipants: 100,
  createdAt: new Date(),
  ...more,
});

/** A participant whose token is valid for ten minutes. */
export const participantRow = <More extends object>({ environmentId }: Owner, roomId: string, more?: More) => ({
  id: newId('participant'),
  environmentId,
  roomId,
  name: 'Ada',
  metadata: {},
  role: 'participant',
  createdAt: new Date(),
  tokenExpiresAt: new Date(Date.now() + 600_000),
  ...more,
});

/** An open session. */
export const sessionRow = <More extends object>(
  { environmentId }: Owner,
  of: { roomId: string; participantId: string },
  more?: More,
) => ({ id: newId('session'), environmentId, ...of, startedAt: new Date(), ...more });

/** A delivery that has succeeded. */
export const deliveryRow = <More extends object>(
  { environmentId }: Owner,
  of: { endpointId: string; eventId: string; eventType: string },
  at: Date,
  more?: More,
) => ({
  id: newId('delivery'),
  environmentId,
  ...of,
  status: 'succeeded' as string,
  createdAt: at,
  completedAt: at,
  ...more,
});
