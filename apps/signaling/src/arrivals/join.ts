import type { JoinOutcome } from '@callplane/db';
import type { ClientMessages, CloseReason } from '@callplane/protocol';
import type { Connection } from '../connections/connection.js';
import type { Session } from '../sessions/session.js';
import type { Wanted } from '../writes/batch.js';
import { Arrival, type ArrivalDeps } from './arrival.js';
import { hashOf, newResumeSecret } from './resume.js';
import { verifyToken, type TokenClaims } from './token.js';

type Joined = Extract<JoinOutcome, { outcome: 'joined' }>;
type Refusal = Exclude<JoinOutcome['outcome'], 'joined' | 'abandoned' | 'failed'> | 'drain';
const REFUSALS = {
  room_ended: 'room_ended',
  removed: 'removed',
  token_revoked: 'invalid_token',
  capacity: 'capacity',
  // The token's signature is valid, but its participant was deleted or never existed in this deployment's database.
  not_found: 'invalid_token',
  overtaken: 'superseded',
  drain: 'drain',
} as const satisfies Record<Refusal, CloseReason>;

/** How long joins of a participant that was not found are refused without another query, in milliseconds. */
const NOT_FOUND_FOR_MS = 3000;

/**
 * Joins a participant to the room in its token. The participant is in the room from the commit on. This instance then
 * reads the room, which shows the participant to the others, and sends the welcome.
 * @throws if a dependency does not answer.
 */
export async function join(deps: ArrivalDeps, connection: Connection, request: ClientMessages['join']): Promise<void> {
  const arrival = new Arrival(deps, connection);
  if (arrival.refusedByDrain()) return;
  const claims = await verify(deps, arrival, request.token);
  if (claims === null) return;
  const { tenant, roomId, participantId } = claims;
  Object.assign(connection.logFields, { roomId, participantId, environmentId: tenant.environmentId });
  if (request.requireMedia === true && !deps.places.anyUp) {
    arrival.refuse('media_unavailable', 'No media server is up.');
    return;
  }
  const joinNumber = await admit(deps, arrival, claims);
  if (joinNumber === null) return;

  const entered = await enter(deps, arrival, claims, joinNumber, request);
  if (entered === null) return;
  const { session, joined, resumeSecret } = entered;
  const own = joined.state;
  await deps.rooms.loadForWelcome(roomId, own);
  if (!arrival.holds(session, joined.connection)) return;
  arrival.welcome(session, { replyTo: request.id, resumed: false, resumeSecret, mediaContinued: false, own });
}

/** @returns null if the token is refused; the connection has been closed then. */
async function verify(
  { arrivalLimits, clock, keys, tokens }: ArrivalDeps,
  arrival: Arrival,
  token: string,
): Promise<TokenClaims | null> {
  const verified = await verifyToken(keys, tokens, token, clock.now());
  if (verified.ok) return verified.claims;
  // The address limit applies to bad tokens only. Verification comes first: with cached keys it costs no query.
  if (arrival.refusedByLimit('address', arrivalLimits.addressWaitMs(arrival.connection))) return null;
  // An expired token does not count as a failure: it was valid once, so it was not guessed.
  if (verified.reason === 'invalid_token') arrivalLimits.failed(arrival.connection);
  arrival.refuse(verified.reason, verified.why);
  return null;
}

/** @returns the number of this join among the participant's joins; null if it is refused and the connection closed. */
async function admit(deps: ArrivalDeps, arrival: Arrival, claims: TokenClaims): Promise<number | null> {
  const { arrivalLimits, writes } = deps;
  const { participantId } = claims;
  if (arrival.refusedByLimit('participant', arrivalLimits.waitMs(participantId))) return null;
  const admission = await writes.admit(claims, () => wantedBy(arrival));
  if (admission.outcome === 'admitted') return admission.number;
  if (admission.outcome === 'not_found') {
    arrivalLimits.refuseFor(participantId, NOT_FOUND_FOR_MS);
    arrival.refuse(REFUSALS.not_found, 'join refused: not_found');
  } else arrival.turnAway(admission, 'participant', participantId);
  return null;
}

/** @returns null if the join is refused or its client has gone; the connection has been closed then */
async function enter(
  deps: ArrivalDeps,
  arrival: Arrival,
  claims: TokenClaims,
  joinNumber: number,
  request: ClientMessages['join'],
): Promise<{ session: Session; joined: Joined; resumeSecret: string } | null> {
  const { connection } = arrival;
  const room = deps.rooms.acquire(claims.roomId);
  const resumeSecret = newResumeSecret();
  let session: Session | null = null;
  try {
    const outcome = await deps.writes.join(
      {
        ...claims,
        tenant: arrival.traced(claims.tenant),
        resumeSecretHash: hashOf(resumeSecret),
        instanceId: deps.instanceId,
        // Only takes effect if the room has no media server yet.
        mediaNodeId: room.state?.mediaNodeId ?? (await deps.places.pick()),
        joinNumber,
      },
      () => wantedBy(arrival),
    );
    if (outcome.outcome === 'abandoned' || outcome.outcome === 'disconnected') {
      arrival.log('disconnected');
      return null;
    }
    if (outcome.outcome !== 'joined') {
      arrival.refuse(REFUSALS[outcome.outcome], `join refused: ${outcome.outcome}`);
      return null;
    }
    const { sessionId, connection: connectionNumber, deliveries } = outcome;
    connection.logFields['sessionId'] = sessionId;
    void deps.producer.wakeDeliveries(deliveries);
    const autoSubscribe = request.autoSubscribe ?? true;
    session = deps.sessions.add(room, connection, {
      sessionId,
      roomId: claims.roomId,
      participantId: claims.participantId,
      permissions: claims.permissions,
      connectionNumber,
      autoSubscribe,
      isResumed: false,
    });
    return { session, joined: outcome, resumeSecret };
  } finally {
    // The session holds the room from now on.
    if (session === null) deps.rooms.release(room);
  }
}

/** A client that asks to leave before its join is written gets no session. */
function wantedBy({ connection, wanted }: Arrival): Wanted {
  return connection.isLeaving ? 'disconnected' : wanted();
}
