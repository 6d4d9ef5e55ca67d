import type { Clock, MasterKeys, TurnSettings } from '@callplane/core';
import type { Database } from '@callplane/db';
import type { JobProducer } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { SettlementWaiter } from './operations/settlement-waiter.js';
import type { SigningKeyRing } from './signing-keys/signing-key-ring.js';

/** What services are given; each names the part that it needs. */
export interface Deps {
  database: Database;
  producer: JobProducer;
  settlements: SettlementWaiter;
  signingKeys: SigningKeyRing;
  masterKeys: MasterKeys;
  turn: TurnSettings;
  tokens: { issuer: string; audience: string };
  /** Where endpoints may point at their creation and change. */
  webhooks: { allowHttp: boolean; isAllowed: (address: string) => boolean };
  /** How long a DELETE waits for its clean-up unless the caller says, in milliseconds. */
  operationWaitMs: number;
  logger: Logger;
  clock: Clock;
}
