import type { Database } from '@callplane/db';
import type { RoomBus } from '@callplane/queue';
import type { ArrivalDeps } from './requests/arrival.js';
import type { DispatchDeps } from './requests/dispatch.js';
import type { SessionsDeps } from './sessions/sessions.js';
import type { SignalingMetrics } from './metrics.js';

/** What the gateway builds itself, from the other dependencies. */
type Built =
  | 'admissions'
  | 'arrivals'
  | 'heartbeat'
  | 'joins'
  | 'mediaWrites'
  | 'metadataWrites'
  | 'qualities'
  | 'resumptions'
  | 'rooms'
  | 'sessions';

/** Dependencies of the gateway. Each folder names the ones that it needs. */
export interface Deps extends Omit<DispatchDeps & ArrivalDeps, Built>, Omit<SessionsDeps, Built> {
  /** Identifies this process in the database and to other instances. */
  instanceId: string;
  database: Database;
  /** Maximum size of the connection pool of `database`. */
  databasePoolMax: number;
  bus: RoomBus;
  /** A room with more live sessions is paged. Equal on all instances. */
  rosterFullMax: number;
  metrics: SignalingMetrics;
}
