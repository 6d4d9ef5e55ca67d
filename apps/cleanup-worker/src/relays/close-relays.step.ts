import { belongingAmong } from '@callplane/db';
import type { Step } from '../deps.js';

/**
 * Runs after the sessions have ended, so that an unresponsive TURN server delays only the outcome of the operation. If
 * a server is `down`, it runs no coturn and relays nothing. If it is `unreachable`, it may still relay, so the operation
 * is tried again.
 */
export const CLOSE_RELAYS_STEP: Step = {
  name: 'close the relays',
  async run(deps, claim, note) {
    if (!deps.relays.isConfigured) return;
    const outcomes = await deps.relays.close('operation', (sessionIds) =>
      belongingAmong(deps.database.sql, claim, sessionIds),
    );
    note({ relaysClosed: outcomes.reduce((sum, { closed }) => sum + closed, 0) });
    const unreachable = outcomes.find(({ state }) => state === 'unreachable');
    if (unreachable !== undefined) throw unreachable.error ?? new Error(unreachable.address);
  },
};
