import { joinRoom, type HeldSession, type JoinInput, type JoinOutcome } from '@callplane/db';
import type { ClientMessages, CloseReason } from '@callplane/protocol';
import type { Connection } from '../connections/connection.js';
import type { Deps } from '../deps.js';
import { logJoin } from './join-log.js';
import { LiveSession } from './live-session.js';
import { hashOf, newResumeSecret } from './resume-secret.js';
import type { Sessions } from './sessions.js';
import { verifyToken } from './verify-token.js';

const REFUSALS = {
  room_ended: 'room_ended',
  removed: 'removed',
  token_revoked: 'invalid_token',
  capacity: 'capacity',
  // The token's signature was good: what it names was deleted, or never was in this deployment's database.
  not_found: 'invalid_token',
} as const satisfies Record<Exclude<JoinOutcome['outcome'], 'joined'>, CloseReason>;

/**
 * A participant comes with its token: it is in the room from the commit on, and is welcomed once this instance has read
 * the room with it.
 * @throws when a dependency does not answer.
 */
export async function join(
  deps: Deps,
  sessions: Sessions,
  connection: Connection,
  request: ClientMessages['join'],
): Promise<void> {
  const startedAtMs = performance.now();
  const { clock, database, instanceId, keys, places, tokens } = deps;
  const log = (outcome: string, fields: object = {}): void =>
    logJoin(deps, connection, { outcome, startedAtMs, ...fields });
  const refuse = (reason: CloseReason, fields: object = {}): void => {
    connection.close(reason);
    log(reason, fields);
  };

  const verified = await verifyToken(keys, tokens, request.token, clock.now());
  if (!verified.ok) {
    refuse(verified.reason, { why: verified.why });
    return;
  }
  const { tenant, roomId, participantId, tokenId, permissions } = verified.claims;
  Object.assign(connection.logFields, { roomId, participantId, environmentId: tenant.environmentId });
  if (sessions.isDraining) {
    refuse('drain');
    return;
  }
  if (request.requireMedia === true && !places.anyUp) {
    refuse('media_unavailable');
    return;
  }

  const secret = newResumeSecret();
  const view = sessions.rooms.acquire(roomId);
  let session: LiveSession | undefined;
  let held: HeldSession | undefined;
  try {
    // Only a room that is nowhere yet takes it.
    const mediaNodeId = view.snapshot?.mediaNodeId ?? (await places.pick());
    const input: JoinInput = {
      tenant,
      roomId,
      participantId,
      tokenId,
      permissions,
      resumeSecretHash: hashOf(secret),
      instanceId,
      mediaNodeId,
    };
    const outcome = await view.joins(() =>
      sessions.joinTurns(async () => (connection.isOpen ? joinRoom(database, input, clock.now()) : null)),
    );
    if (outcome === null) {
      log('gone');
      return;
    }
    if (outcome.outcome !== 'joined') {
      refuse(REFUSALS[outcome.outcome], { cause: outcome.outcome });
      return;
    }
    const { sessionId, connection: connectionNumber } = outcome;
    held = { sessionId, connection: connectionNumber };
    connection.logFields['sessionId'] = sessionId;
    void deps.producer.wakeDeliveries(outcome.deliveries);
    await sessions.rooms.show(roomId, true);
    if (!connection.isOpen) {
      log('gone');
      return;
    }
    session = new LiveSession(deps, sessions.rooms, view, {
      sessionId,
      tenant,
      roomId,
      participantId,
      permissions,
      connectionNumber,
      autoSubscribe: request.autoSubscribe ?? true,
    });
    const begun = sessions.begin(session, connection, {
      replyTo: request.id,
      resumed: false,
      resumeSecret: secret,
      mediaContinued: false,
    });
    log(begun ? 'joined' : 'ended at once');
  } finally {
    // From its beginning on the session holds the view.
    if (session === undefined) {
      sessions.rooms.release(view);
      // It is in the room and nobody can come back to it: the secret was never told.
      if (held !== undefined) sessions.writes.track(sessions.writes.end(held, roomId, 'connection_lost'));
    }
  }
}
