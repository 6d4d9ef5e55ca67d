import type { Clock, Random } from '@callplane/core';
import type { Database } from '@callplane/db';
import type { JobProducer } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import type { Settling } from './deliveries/settling.js';
import type { Resolver } from './destinations/resolver.js';
import type { WebhookMetrics } from './metrics.js';
import type { PinnedAgents } from './sending/pinned-agents.js';

export interface Deps {
  database: Database;
  settling: Settling;
  producer: JobProducer;
  logger: Logger;
  metrics: WebhookMetrics;
  clock: Clock;
  random: Random;
  /** Opens sealed signing secrets. */
  secrets: { open(sealed: string, context: string): string };
  resolver: Resolver;
  agents: PinnedAgents;
  isAllowedAddress: (address: string) => boolean;
  /** The name of the configured network that allows the address; null for a public one. */
  networkOf: (address: string) => string | null;
  isAllowedPort: (port: number) => boolean;
  allowHttp: boolean;
  leaseMs: number;
  deliveryDeadlineMs: number;
  dnsDeadlineMs: number;
  /** Certificates to trust instead of the system's; for tests. */
  certificateAuthority?: string;
}
