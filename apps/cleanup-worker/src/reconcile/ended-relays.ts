import { endedAmong, recordTurnServerState } from '@callplane/db';
import type { Deps } from '../deps.js';

/**
 * Closes the relays of ended sessions. coturn cannot revoke a credential, so a client can allocate new relays until its
 * credential expires. This also covers sessions that ended without an operation.
 */
export async function closeEndedRelays(deps: Pick<Deps, 'database' | 'relays' | 'logger'>): Promise<void> {
  if (!deps.relays.isConfigured) return;
  const { sql } = deps.database;
  const outcomes = await deps.relays.close('sweep', (sessionIds) => endedAmong(sql, sessionIds));
  for (const { address, state, closed, error } of outcomes) {
    if (closed > 0) deps.logger.warn('relays of ended sessions closed', { address, closed });
    if (!(await recordTurnServerState(sql, address, state))) continue;
    if (state === 'up') deps.logger.info('turn server state', { address, state });
    else deps.logger.error('turn server state', { address, state, error });
  }
}
