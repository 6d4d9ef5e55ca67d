import type { Clock, TurnSettings } from '@callplane/core';
import type { Database } from '@callplane/db';
import type { JobProducer, RoomBus } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { MediaPlaces } from './media/media-places.js';
import type { VerificationKeys } from './sessions/verification-keys.js';

/** What the gateway is given; each part names what it needs. */
export interface Deps {
  /** This process, as the database and other instances know it. */
  instanceId: string;
  database: Database;
  /** How many connections it may open. */
  databasePoolMax: number;
  producer: JobProducer;
  bus: RoomBus;
  places: MediaPlaces;
  keys: VerificationKeys;
  tokens: { issuer: string; audience: string };
  turn: TurnSettings;
  reconnectGraceSeconds: number;
  pingIntervalSeconds: number;
  logger: Logger;
  clock: Clock;
}
