import type { Clock, MasterKeys, TurnSettings } from '@callplane/core';
import type { Database } from '@callplane/db';
import type { JobProducer } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { ObjectStore } from '@callplane/store';
import type { EventWaiter } from './events/event-waiter.js';
import type { Asks } from './participants/asks.js';
import type { SettlementWaiter } from './operations/settlement-waiter.js';
import type { SigningKeyRing } from './signing-keys/signing-key-ring.js';
import type { ReadLimiter } from './statements/read-limiter.js';
import type { SharedStatements } from './statements/shared-statements.js';
import type { StreamHub } from './stream/stream-hub.js';

export interface ConsoleSettings {
  /** Where calls in the console connect to; null: to `/v1/signaling` of the address that the browser has. */
  signalingUrl: string | null;
  /** Tells this process and the others that a session has ended, by the hexadecimal hash of its cookie. */
  onSessionEnded: (secretHashHex: string) => void;
}

/** Dependencies of the services. Each service picks the fields that it needs. */
export interface Deps {
  database: Database;
  /** Connections for reads, which continue while all connections of `database` wait for a commit. */
  reads: Database;
  statements: SharedStatements;
  readLimiter: ReadLimiter;
  producer: JobProducer;
  settlements: SettlementWaiter;
  eventWaiter: EventWaiter;
  asks: Asks;
  streams: StreamHub;
  signingKeys: SigningKeyRing;
  masterKeys: MasterKeys;
  turn: TurnSettings;
  tokens: { issuer: string; audience: string };
  /** The destinations that a webhook endpoint may have, checked when it is created or changed. */
  webhooks: {
    allowHttp: boolean;
    isAllowed: (address: string) => boolean;
    /** Default: port 443, and ports from 1024 upwards. */
    isAllowedPort?: (port: number) => boolean;
  };
  /** Where files of recordings are; null: recordings are switched off. */
  recordings: ObjectStore | null;
  /** How long a DELETE waits for its clean-up, in milliseconds. A `Prefer` header overrides it. */
  operationWaitMs: number;
  /** Null: switched off. */
  console: ConsoleSettings | null;
  logger: Logger;
  clock: Clock;
}
