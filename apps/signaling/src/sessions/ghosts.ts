import type { Clock } from '@callplane/core';
import { sessionsHeldBy, type Database } from '@callplane/db';
import type { Logger } from '@callplane/runtime';
import type { SessionWrites } from './session-writes.js';

/** The join behind a session row younger than this may still be in progress here, in milliseconds. */
const GHOST_AGE_MS = 30_000;

/**
 * Starts the grace period of sessions whose rows name this instance although it does not hold them. That happens when
 * PostgreSQL's answer to a join or resumption is lost.
 * @param isHeld whether this instance holds a session or is just resuming it: the row may name the instance before it
 *   knows the session.
 */
export async function disownGhosts(
  deps: { instanceId: string; clock: Clock; database: Database; logger: Logger },
  writes: Pick<SessionWrites, 'markLost'>,
  isHeld: (sessionId: string) => boolean,
): Promise<void> {
  const { clock, database, instanceId, logger } = deps;
  const named = await sessionsHeldBy(database.sql, instanceId);
  const ghosts = named.filter(({ sessionId, startedAt }) => {
    const isFresh = clock.now().getTime() - startedAt.getTime() < GHOST_AGE_MS;
    return !isFresh && !isHeld(sessionId);
  });
  for (const { sessionId } of ghosts) logger.warn('session has no connection', { sessionId });
  await Promise.all(
    ghosts.map(({ sessionId, connection, roomId }) => writes.markLost({ sessionId, connection }, roomId)),
  );
}
