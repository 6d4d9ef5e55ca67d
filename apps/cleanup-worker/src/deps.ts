import type { MediaNodes } from '@callplane/media';
import type { OperationDeps } from '@callplane/operations';
import type { CleanupMetrics } from './metrics.js';
import type { OutageWatch } from './reconcile/outage-watch.js';
import type { Relays } from './relays/relays.js';

export interface Deps extends OperationDeps {
  /** Empty if no media server is configured or registered. */
  media: MediaNodes;
  relays: Relays;
  metrics: CleanupMetrics;
  /** How long a session outlives its connection, in milliseconds. */
  graceMs: number;
  /** The roster of a room becomes paged when the room has more live sessions than this. */
  rosterFullMax: number;
  /** Without it, each silence is judged. */
  outages?: Pick<OutageWatch, 'isSettled'>;
}
