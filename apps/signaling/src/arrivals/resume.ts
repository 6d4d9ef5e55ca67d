import { createHash, randomBytes } from 'node:crypto';
import { findMovedSession, type OrphanedSession, type ResumeOutcome } from '@callplane/db';
import type { ClientMessages } from '@callplane/protocol';
import type { Client } from '../clients/client.js';
import { CLOSE_REASON_OF_END } from '../sessions/sessions.js';
import type { Session } from '../sessions/session.js';
import { Arrival, type ArrivalDeps } from './arrival.js';

type Resumed = Extract<ResumeOutcome, { outcome: 'resumed' }>;
interface Moved {
  outcome: 'moved';
  to: { roomId: string; sessionId: string };
}

/**
 * The session may come from this or another instance. One that was moved continues in the other room, with the same
 * secret. @throws if a dependency does not answer.
 */
export async function resume(deps: ArrivalDeps, client: Client, request: ClientMessages['resume']): Promise<void> {
  const arrival = new Arrival(deps, client, { resumed: true });
  if (arrival.refusedByDrain()) return;
  const outcome = await write(deps, arrival, request);
  if (outcome === null) return;
  if (outcome.outcome === 'resumed') return continueSession(deps, arrival, request, outcome);
  arrival.log('moved');
  const inTarget = { ...request, ...outcome.to, continueMedia: false };
  return deps.arrivals.track(client, inTarget.sessionId, () => resume(deps, client, inTarget));
}

/**
 * Continues a session without a gateway, whose client will not resume it by itself. Of several gateways that try, one
 * succeeds; the clients of the others end.
 * @throws if a dependency does not answer.
 */
export async function adopt(deps: ArrivalDeps, client: Client, orphan: OrphanedSession): Promise<void> {
  const arrival = new Arrival(deps, client, { adopted: true });
  if (arrival.refusedByDrain()) return;
  const { sessionId, roomId, resumeSecretHash, connection } = orphan;
  const input = { sessionId, resumeSecretHash, connection, instanceId: deps.instanceId };
  const outcome = await deps.writes.resume(roomId, input, arrival.clientState);
  if (outcome.outcome === 'resumed') {
    const asClient = { sessionId, resumeSecret: '', autoSubscribe: false, peers: ['publisher' as const] };
    await continueSession(deps, arrival, { type: 'resume', ...asClient }, outcome);
    return;
  }
  client.drop();
  arrival.log(outcome.outcome === 'unknown' ? 'overtaken' : outcome.outcome);
}

async function continueSession(
  deps: ArrivalDeps,
  arrival: Arrival,
  request: ClientMessages['resume'],
  outcome: Resumed,
): Promise<void> {
  const { client } = arrival;
  const { sessionId } = request;
  const { tenant, roomId, participantId } = outcome;
  Object.assign(client.logFields, { sessionId, roomId, participantId, environmentId: tenant.environmentId });
  const taken = takeOver(deps, arrival, request, outcome);
  if (taken === null) return;
  const { session, isHere } = taken;
  const clientHasPeers = request.continueMedia !== false;
  const [own] = await Promise.all([outcome.state, deps.rooms.loadForWelcome(roomId)]);
  if (isHere) await session.media.takenOver();
  else {
    await session.media.takeOver({
      media: outcome.media,
      previousConnection: outcome.connection - 1,
      clientHasPeers,
      clientPeers: request.peers,
      answeredOffer: request.offerId,
      tracks: own.tracks,
    });
  }
  if (!arrival.holds(session, outcome.connection)) return;
  arrival.welcome(session, {
    replyTo: request.id,
    resumed: true,
    resumeSecret: request.resumeSecret,
    continueMedia: () => session.media.resumed(clientHasPeers),
    own,
  });
}

/** @returns null if the resumption is refused; the client has ended then. */
async function write(
  { arrivalLimits, database, instanceId, writes }: ArrivalDeps,
  arrival: Arrival,
  request: ClientMessages['resume'],
): Promise<Resumed | Moved | null> {
  const { roomId, sessionId, resumeSecret } = request;
  if (arrival.refusedByLimit('address', arrivalLimits.addressWaitMs(arrival.client))) return null;
  if (arrival.refusedByLimit('session', arrivalLimits.waitMs(sessionId))) return null;
  const input = { sessionId, resumeSecretHash: hashOf(resumeSecret), instanceId };
  const outcome = isPlausible(request)
    ? await writes.resume(roomId, input, arrival.clientState)
    : { outcome: 'unknown' as const };
  switch (outcome.outcome) {
    case 'resumed':
      return outcome;
    case 'unknown':
      arrivalLimits.failed(arrival.client);
      arrival.refuse('invalid_session', 'Session or secret unknown.');
      return null;
    case 'ended': {
      const to = outcome.reason === 'moved' ? await findMovedSession(database.sql, input) : null;
      if (to !== null) return { outcome: 'moved', to };
      arrival.refuse(CLOSE_REASON_OF_END[outcome.reason], `session ended: ${outcome.reason}`);
      return null;
    }
    default:
      arrival.decline(outcome, 'session', sessionId);
      return null;
  }
}

/** @returns the session, and whether this instance held it already; null if a later resumption has it */
function takeOver(
  { instanceId, rooms, sessions }: ArrivalDeps,
  arrival: Arrival,
  { sessionId, autoSubscribe = true }: ClientMessages['resume'],
  { connection: connectionNumber, previousInstanceId, ...facts }: Resumed,
): { session: Session; isHere: boolean } | null {
  const { client } = arrival;
  const known = sessions.get(sessionId);
  if (known !== undefined && known.connectionNumber >= connectionNumber) {
    client.drop();
    arrival.log('overtaken');
    return null;
  }
  if (known?.connectionNumber === connectionNumber - 1 && previousInstanceId === instanceId && known.isResumable) {
    known.autoSubscribe = autoSubscribe;
    sessions.resumeHere(known, client, connectionNumber);
    return { session: known, isHere: true };
  }
  known?.dispatch('resumedElsewhere');
  const { roomId, participantId, permissions } = facts;
  const session = sessions.add(rooms.acquire(roomId), client, {
    sessionId,
    participantId,
    permissions,
    connectionNumber,
    autoSubscribe,
    isResumed: true,
  });
  return { session, isHere: false };
}

const SECRET_BYTES = 32;

/** Creates the secret with which a client may resume its session. Only the client gets it. */
export function newResumeSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

export function hashOf(secret: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(secret).digest());
}

const SECRET = /^[A-Za-z0-9_-]{43}$/;
const SESSION_ID = /^sess_[0-7][0-9a-z]{25}$/;

/** Whether a session can have this id and secret. If not, the resumption is refused without a query. */
function isPlausible({ sessionId, resumeSecret }: { sessionId: string; resumeSecret: string }): boolean {
  return SESSION_ID.test(sessionId) && SECRET.test(resumeSecret);
}
