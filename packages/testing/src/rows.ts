import { randomBytes, randomUUID } from 'node:crypto';
import {
  apiKeyHint,
  formatApiKey,
  hashApiKey,
  newId,
  newWebhookEndpoint,
  SCOPES,
  type PaceTimes,
  type RoomStatus,
  type Tenant,
  type WebhookEndpointState,
} from '@callplane/core';
import {
  acceptParticipantMove,
  claimOperation,
  createEnvironment,
  createProject,
  endSessions,
  insertApiKey,
  insertParticipantsIfOpen,
  insertWebhookEndpoint,
  joinSessions,
  markDisconnected,
  moveParticipant,
  Prisma,
  resumeSessions,
  updateOwnMetadata,
  type Database,
  type HeldSession,
  type JoinInput,
  type JoinOutcome,
  type MoveInput,
  type NewParticipant,
  type ResumeInput,
  type TypedSql,
} from '@callplane/db';

export interface TestTenant extends Tenant {
  /** A secret key with all scopes. */
  readonly key: string;
  readonly keyId: string;
}

/** Creates a project with one environment and one key, as the admin command line does. */
export async function createTestTenant(database: Database): Promise<TestTenant> {
  const createdAt = new Date();
  const [projectId, environmentId, keyId] = [newId('project'), newId('environment'), newId('apiKey')];
  const key = formatApiKey('secret', randomBytes(32));
  await createProject(database.prisma, { id: projectId, name: 'Test', createdAt });
  await createEnvironment(database.prisma, { id: environmentId, projectId, name: 'test', createdAt });
  await insertApiKey(database.prisma, {
    id: keyId,
    environmentId,
    type: 'secret',
    name: null,
    keyHash: new Uint8Array(hashApiKey(key)),
    keyHint: apiKeyHint(key),
    scopes: [...SCOPES],
    createdAt,
    expiresAt: null,
  });
  return { projectId, environmentId, key, keyId };
}

/**
 * Adds an enabled webhook endpoint for all events. Its secret cannot be opened, so nothing is sent to it.
 * @param more fields with other values.
 * @returns its id.
 */
export async function insertTestEndpoint(
  database: Pick<Database, 'transaction'>,
  tenant: Tenant,
  more: Partial<WebhookEndpointState> = {},
): Promise<string> {
  const made = { id: newId('webhookEndpoint'), url: 'https://example.com/', createdAt: new Date() };
  const endpoint = newWebhookEndpoint({ ...made, ...more });
  await database.transaction((tx) => insertWebhookEndpoint(tx, tenant, endpoint, 's1.k1.sealed'));
  return endpoint.id;
}

export interface TestParticipant {
  participantId: string;
  tokenId: string;
  /** The room's status, or null if there is no such room. Unless the room is open, no participant was created. */
  roomStatus: RoomStatus | null;
}

/** @returns the room's status (nothing was written unless the room is open), or null when the room does not exist. */
export async function insertTestParticipant(
  db: TypedSql,
  tenant: Tenant,
  participant: NewParticipant,
): Promise<RoomStatus | null> {
  const [status = null] = await insertParticipantsIfOpen(db, [{ tenant, participant }], { skipLocked: false });
  return status === 'busy' ? null : status;
}

/** Creates a participant as the API does, with a token issued now for ten minutes. */
export async function inviteTestParticipant(
  db: TypedSql,
  tenant: Tenant,
  roomId: string,
  createdAt: Date,
  participantId = newId('participant'),
): Promise<TestParticipant> {
  const tokenId = newId('token');
  const expiresAt = new Date(createdAt.getTime() + 600_000);
  const roomStatus = await insertTestParticipant(db, tenant, {
    id: participantId,
    roomId,
    externalId: null,
    name: 'Ada',
    metadata: {},
    role: 'participant',
    createdAt,
    token: { id: tokenId, permissions: ['room:join'], expiresAt },
  });
  return { participantId, tokenId, roomStatus };
}

/** Writes of a gateway for a single session. Gateways write in batches. */

type JoinNeeds = 'tenant' | 'roomId' | 'participantId' | 'tokenId';

const UNPACED: PaceTimes = { intervalMs: 0, aheadMs: 0 };

export async function joinOne(
  database: Database,
  input: Pick<JoinInput, JoinNeeds> & Partial<Omit<JoinInput, JoinNeeds>>,
  now: Date,
  pace = UNPACED,
): Promise<JoinOutcome> {
  const defaults = {
    permissions: ['room:join'],
    resumeSecretHash: new Uint8Array(32),
    instanceId: 'instance',
    mediaNodeId: null,
  } as const;
  const settings = { pace, rosterFullMax: Infinity };
  return only(await joinSessions(database, input.roomId, [{ ...defaults, ...input }], now, settings));
}

export async function resumeOne(database: Database, input: ResumeInput, pace = UNPACED) {
  const outcome = only(await resumeSessions(database, [input], pace));
  return outcome.outcome === 'resumed' ? { ...outcome, state: await outcome.state } : outcome;
}

/** Acts like the API and a worker: accepts a move and carries it out. @throws what the worker throws */
export async function moveOne(
  database: Database,
  tenant: Tenant,
  { roomId, participantId }: { roomId: string; participantId: string },
  target: Pick<MoveInput, 'roomId'> & Partial<MoveInput>,
  now: Date,
): Promise<void> {
  const input = { permissions: null, ...target };
  const accepted = await acceptParticipantMove(database, tenant, roomId, participantId, input, now);
  if ('refused' in accepted) throw new Error(accepted.refused);
  const claim = await claimOperation(database.sql, accepted.operation.id, randomUUID(), 60_000);
  if (claim === null) throw new Error(`${accepted.operation.id} is not due`);
  await database.transaction((tx) => moveParticipant(tx, { ...claim, participantId }, Infinity, now));
}

/** @returns whether the session was ended */
export async function endOne(
  database: Database,
  held: HeldSession,
  reason: 'left' | 'connection_lost',
  now: Date,
): Promise<boolean> {
  const { ended } = await endSessions(database, await roomOf(database, held), [held], reason, now);
  return ended.length > 0;
}

/** @returns whether the session had a connection until now */
export async function disconnectOne(database: Database, held: HeldSession): Promise<boolean> {
  return (await markDisconnected(database, [held])).length === 1;
}

/** @returns whether the metadata was written */
export async function updateMetadataOf(
  database: Database,
  held: HeldSession,
  metadata: Record<string, unknown>,
): Promise<boolean> {
  const written = await updateOwnMetadata(database, await roomOf(database, held), [{ held, metadata }]);
  return written.has(held.sessionId);
}

async function roomOf({ prisma }: Database, { sessionId }: HeldSession): Promise<string> {
  return (await prisma.participantSession.findUniqueOrThrow({ where: { id: sessionId } })).roomId;
}

function only<T>(results: readonly T[]): T {
  const [result] = results;
  if (result === undefined || results.length > 1) throw new Error(`${results.length} results of one input`);
  return result;
}

/** Runs a statement that no parameters can express, such as one that changes the schema. */
export async function execute({ sql }: Pick<Database, 'sql'>, statement: string): Promise<number> {
  return sql.$executeRaw`${Prisma.raw(statement)}`;
}
