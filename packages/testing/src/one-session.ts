import {
  admitJoins,
  endSessions,
  joinSessions,
  markDisconnected,
  resumeSessions,
  updateOwnMetadata,
  type Admission,
  type Database,
  type HeldSession,
  type JoinInput,
  type JoinOutcome,
  type JoinRequest,
  type ResumeInput,
  type ResumeOutcome,
} from '@callplane/db';
import type { PaceTimes } from '@callplane/core';

/** Writes of a gateway for a single session. Gateways write in batches. */

type JoinNeeds = 'tenant' | 'roomId' | 'participantId' | 'tokenId';

/** @throws the error of a join that failed */
export async function joinOne(
  database: Database,
  input: Pick<JoinInput, JoinNeeds> & Partial<Omit<JoinInput, JoinNeeds>>,
  now: Date,
): Promise<Exclude<JoinOutcome, { outcome: 'failed' }>> {
  const defaults = {
    permissions: ['room:join'],
    resumeSecretHash: new Uint8Array(32),
    instanceId: 'instance',
    mediaNodeId: null,
  } as const;
  const outcome = only(await joinSessions(database, input.roomId, [{ ...defaults, ...input }], now));
  if (outcome.outcome === 'failed') throw outcome.error;
  return outcome;
}

export async function admitOne(db: Database['sql'], request: JoinRequest, pace: PaceTimes): Promise<Admission> {
  return only(await admitJoins(db, [request], pace));
}

export async function resumeOne(database: Database, input: ResumeInput): Promise<ResumeOutcome> {
  return only(await resumeSessions(database, [input]));
}

/** @returns whether the session was ended */
export async function endOne(
  database: Database,
  held: HeldSession,
  reason: 'left' | 'connection_lost',
  now: Date,
): Promise<boolean> {
  const { ended } = await endSessions(database, await roomOf(database, held), [held], reason, now);
  return ended.has(held.sessionId);
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
