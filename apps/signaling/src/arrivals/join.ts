import type { JoinOutcome } from '@callplane/db';
import type { ClientMessages, CloseReason } from '@callplane/protocol';
import type { Client } from '../clients/client.js';
import { placeSession } from '../media/places.js';
import type { Room } from '../rooms/room.js';
import type { Session } from '../sessions/session.js';
import { Arrival, type ArrivalDeps } from './arrival.js';
import { hashOf, newResumeSecret } from './resume.js';
import { verifyToken, type TokenClaims } from './token.js';

type Joined = Extract<JoinOutcome, { outcome: 'joined' }>;
/** The close reasons of joins that PostgreSQL refuses. */
export const REFUSALS = {
  room_ended: 'room_ended',
  removed: 'removed',
  token_revoked: 'invalid_token',
  capacity: 'capacity',
  // The token's signature is valid, but its participant was deleted or never existed in this deployment's database.
  not_found: 'invalid_token',
  overtaken: 'superseded',
} as const satisfies Record<string, CloseReason>;

/** How long joins of a participant that was not found are refused without another query, in milliseconds. */
const NOT_FOUND_FOR_MS = 3000;

/** The participant is in the room from the commit on. @throws if a dependency does not answer. */
export async function join(deps: ArrivalDeps, client: Client, request: ClientMessages['join']): Promise<void> {
  const begun = await begin(deps, client, request.token);
  if (begun === null) return;
  const { arrival, claims } = begun;
  const { roomId, participantId } = claims;
  if (request.requireMedia === true && !deps.places.anyUp) {
    arrival.refuse('media_unavailable', 'No media server is up.');
    return;
  }
  if (arrival.refusedByLimit('participant', deps.arrivalLimits.waitMs(participantId))) return;

  const room = deps.rooms.acquire(roomId);
  let session: Session | null = null;
  try {
    const resumeSecret = client.resumeSecret ?? newResumeSecret();
    const joined = await write(deps, arrival, claims, room, resumeSecret);
    if (joined === null) return;
    session = deps.sessions.add(room, client, {
      sessionId: joined.state.sessionId,
      participantId,
      permissions: claims.permissions,
      connectionNumber: joined.state.connection,
      autoSubscribe: request.autoSubscribe ?? true,
      isResumed: false,
    });
    const own = joined.state;
    await deps.rooms.loadForWelcome(roomId, joined);
    session.media.placeOn(await placeSession(deps, room, claims.region), claims.region);
    if (!arrival.holds(session, own.connection)) return;
    arrival.welcome(session, { replyTo: request.id, resumed: false, resumeSecret, continueMedia: () => false, own });
  } finally {
    // A session holds the room until it is gone.
    if (session === null) deps.rooms.release(room);
  }
}

/** Begins a join or a test. @returns null if the instance drains or the token is refused; the client has ended then. */
export async function begin(
  deps: ArrivalDeps,
  client: Client,
  token: string,
): Promise<{ arrival: Arrival; claims: TokenClaims } | null> {
  const { arrivalLimits, clock, keys, tokens } = deps;
  const arrival = new Arrival(deps, client);
  if (arrival.refusedByDrain()) return null;
  const verified = await verifyToken(keys, tokens, token, clock.now());
  if (verified.ok) {
    const { tenant, roomId, participantId } = verified.claims;
    Object.assign(client.logFields, { roomId, participantId, environmentId: tenant.environmentId });
    return { arrival, claims: verified.claims };
  }
  // The address limit applies to bad tokens only. Verification comes first: with cached keys it costs no query.
  if (arrival.refusedByLimit('address', arrivalLimits.addressWaitMs(client))) return null;
  // An expired token does not count as a failure: it was valid once, so it was not guessed.
  if (verified.reason === 'invalid_token') arrivalLimits.failed(client);
  arrival.refuse(verified.reason, verified.why);
  return null;
}

/** @returns null if the join is refused or its client has gone; the client has ended then */
async function write(
  { arrivalLimits, instanceId, places, producer, writes }: ArrivalDeps,
  arrival: Arrival,
  claims: TokenClaims,
  room: Room,
  resumeSecret: string,
): Promise<Joined | null> {
  const { participantId } = claims;
  const outcome = await writes.join(
    {
      ...claims,
      tenant: arrival.traced(claims.tenant),
      resumeSecretHash: hashOf(resumeSecret),
      instanceId,
      mediaNodeId: room.state?.mediaNodeId ?? places.pick(claims.region),
    },
    // A client that asks to leave before its join is written gets no session.
    () => (arrival.client.isLeaving ? 'disconnected' : arrival.clientState()),
  );
  switch (outcome.outcome) {
    case 'joined':
      arrival.client.logFields['sessionId'] = outcome.state.sessionId;
      void producer.wakeDeliveries(outcome.deliveries);
      return outcome;
    case 'abandoned':
      arrival.log('disconnected');
      return null;
    case 'too_many':
    case 'disconnected':
    case 'drain':
      arrival.decline(outcome, 'participant', participantId);
      return null;
    default:
      if (outcome.outcome === 'not_found') arrivalLimits.refuseFor(participantId, NOT_FOUND_FOR_MS);
      arrival.refuse(REFUSALS[outcome.outcome], `join refused: ${outcome.outcome}`);
      return null;
  }
}
