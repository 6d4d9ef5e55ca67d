import type { ClaimedOperation, EndedNow } from '@callplane/db';
import { logSessionTransition } from '@callplane/runtime';
import type { Deps } from '../deps.js';

/** Logs the sessions that a step has ended, at level debug, under the names of the moves in specs/sessions.qnt. */
export function noteEnded(
  { logger }: Pick<Deps, 'logger'>,
  transition: 'endOfRoom' | 'remove',
  { roomId }: Pick<ClaimedOperation, 'roomId'>,
  ended: readonly EndedNow[],
  sinceMs: number,
): void {
  for (const { sessionId, version, participant } of ended) {
    logSessionTransition(logger, transition, () => ({
      row: roomId,
      participant: participant.id,
      session: sessionId,
      version,
      tookMs: performance.now() - sinceMs,
    }));
  }
}
