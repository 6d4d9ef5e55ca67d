import { resumeSession } from '@callplane/db';
import type { ClientMessages } from '@callplane/protocol';
import type { Connection } from '../connections/connection.js';
import type { Deps } from '../deps.js';
import { logJoin } from './join-log.js';
import { LiveSession } from './live-session.js';
import { hashOf } from './resume-secret.js';
import { CLOSE_REASON_OF_END, type Sessions } from './sessions.js';

/**
 * A client comes back with its session's secret, here or from another instance: the session goes on, and nobody leaves
 * or joins by it.
 * @throws when a dependency does not answer.
 */
export function resume(
  deps: Deps,
  sessions: Sessions,
  connection: Connection,
  request: ClientMessages['resume'],
): Promise<void> {
  return sessions.whileResuming(request.sessionId, () => takeOver(deps, sessions, connection, request));
}

async function takeOver(
  deps: Deps,
  sessions: Sessions,
  connection: Connection,
  request: ClientMessages['resume'],
): Promise<void> {
  const startedAtMs = performance.now();
  const { database, instanceId } = deps;
  const log = (outcome: string, fields: object = {}): void =>
    logJoin(deps, connection, { outcome, startedAtMs, resumed: true, ...fields });
  if (sessions.isDraining) {
    connection.close('drain');
    log('drain');
    return;
  }
  const { sessionId, resumeSecret } = request;
  const resumeSecretHash = hashOf(resumeSecret);
  const outcome = await resumeSession(database, { sessionId, resumeSecretHash, instanceId });
  if (outcome.outcome !== 'resumed') {
    const reason = outcome.outcome === 'unknown' ? 'invalid_session' : CLOSE_REASON_OF_END[outcome.reason];
    connection.close(reason);
    log(reason);
    return;
  }
  const { tenant, roomId, participantId, permissions, connection: connectionNumber } = outcome;
  Object.assign(connection.logFields, { sessionId, roomId, participantId, environmentId: tenant.environmentId });

  const known = sessions.get(sessionId);
  if (known !== undefined && known.connectionNumber >= connectionNumber) {
    // Another connection has resumed it meanwhile.
    connection.drop();
    log('overtaken');
    return;
  }
  const here =
    known !== undefined &&
    !known.ended &&
    outcome.previousInstanceId === instanceId &&
    known.connectionNumber === connectionNumber - 1;
  if (known !== undefined && !here) sessions.writes.track(sessions.close(known, null, false));

  const view = sessions.rooms.acquire(roomId);
  let begun = false;
  let session: LiveSession;
  if (here) {
    session = known;
    sessions.reconnect(session, connection, connectionNumber);
  } else {
    session = new LiveSession(deps, sessions.rooms, view, {
      sessionId,
      tenant,
      roomId,
      participantId,
      permissions,
      connectionNumber,
      autoSubscribe: true,
    });
  }
  session.autoSubscribe = request.autoSubscribe ?? true;
  try {
    await sessions.rooms.show(roomId, false);
    const mediaContinued = here && session.media.resumed(request.continueMedia !== false);
    const current = sessions.get(sessionId);
    const overtaken =
      session.connectionNumber !== connectionNumber ||
      (current !== undefined && current.connectionNumber > connectionNumber);
    if (!connection.isOpen || session.ended || overtaken) {
      connection.drop();
      log(overtaken ? 'overtaken' : 'gone');
      return;
    }
    if (current !== undefined && current !== session) sessions.writes.track(sessions.close(current, null, false));
    begun = true;
    const welcomed = sessions.begin(session, connection, {
      replyTo: request.id,
      resumed: true,
      resumeSecret,
      mediaContinued,
    });
    log(welcomed ? 'resumed' : 'ended at once', { here, mediaContinued });
    if (welcomed && !here) session.media.expectRepublish();
  } finally {
    // From its beginning on the session holds the view; one that was here holds it already.
    if (here || !begun) sessions.rooms.release(view);
    if (!here && !begun) sessions.writes.track(sessions.writes.markLost(session.held, session.roomId));
  }
}
