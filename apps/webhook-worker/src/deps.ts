import type { Clock, Random } from '@callplane/core';
import type { Database } from '@callplane/db';
import type { JobProducer } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { Claiming } from './deliveries/claiming.js';
import type { OpenedSecrets } from './deliveries/opened-secrets.js';
import type { Senders } from './deliveries/senders.js';
import type { Settling } from './deliveries/settling.js';
import type { Resolver } from './destinations/resolver.js';
import type { WebhookMetrics } from './metrics.js';
import type { PinnedAgents } from './sending/pinned-agents.js';

export interface Deps {
  database: Database;
  /** Its commits do not wait for the disk: claims go here. */
  claims: Database;
  claiming: Claiming;
  settling: Settling;
  /** Requests under way: the contract's concurrency. */
  senders: Senders;
  producer: JobProducer;
  logger: Logger;
  metrics: WebhookMetrics;
  clock: Clock;
  random: Random;
  secrets: OpenedSecrets;
  resolver: Resolver;
  agents: PinnedAgents;
  isAllowedAddress: (address: string) => boolean;
  allowHttp: boolean;
  leaseMs: number;
  deliveryDeadlineMs: number;
  dnsDeadlineMs: number;
  /** Certificates to trust instead of the system's; for tests. */
  certificateAuthority?: string;
}
