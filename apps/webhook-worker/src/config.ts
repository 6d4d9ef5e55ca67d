import { DELIVERY_DEADLINE_SECONDS, DNS_DEADLINE_SECONDS, LEASE_SECONDS } from '@callplane/core';
import {
  databaseSettings,
  encryptionSettings,
  healthSettings,
  processSettings,
  redisSettings,
  SECRET,
  webhookDestinationSettings,
} from '@callplane/runtime';
import { Type, type Static } from 'typebox';

/** The environment variables of this app, parsed once at its start. The source of docs/configuration.md. */
export const WebhookWorkerConfig = Type.Object({
  ...databaseSettings,
  ...redisSettings,
  ...encryptionSettings,
  ...webhookDestinationSettings,
  WEBHOOK_DISABLE_AFTER_DAYS: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 365,
    description: 'Days after which an endpoint is disabled if all its attempts in that time have failed; 0 = never.',
  }),
  WEBHOOK_PROXY_URL: Type.Optional(
    Type.String({
      ...SECRET,
      pattern: '^http://.+',
      expected: 'a URL like http://user:password@proxy:3128',
      description:
        'HTTP proxy through which deliveries leave, with CONNECT. It gets the address that was resolved and judged here.',
    }),
  ),
  WEBHOOK_PROXY_RESOLVES: Type.Boolean({
    default: false,
    description:
      'Whether the proxy resolves host names, and has to refuse addresses that are not public: see ' +
      'docs/operations/security.md.',
  }),
  WORKERS_PER_PROCESS: Type.Integer({
    default: 1,
    minimum: 1,
    maximum: 16,
    description:
      'Workers of this process, of four slots each. More of them wait for slow receivers without another process; one processor carries them all.',
  }),
  LEASE_MS: Type.Integer({
    default: LEASE_SECONDS * 1000,
    minimum: 100,
    maximum: 3_600_000,
    description:
      "Lease of a claimed delivery, in milliseconds. If its worker dies, the delivery is due again once another worker has its turn, and without Redis when the lease expires. The default is the contract's value; tests shorten it.",
  }),
  DELIVERY_DEADLINE_MS: Type.Integer({
    default: DELIVERY_DEADLINE_SECONDS * 1000,
    minimum: 50,
    maximum: 60_000,
    description: "Deadline of a whole attempt, in milliseconds. The default is the contract's value; tests shorten it.",
  }),
  DNS_DEADLINE_MS: Type.Integer({
    default: DNS_DEADLINE_SECONDS * 1000,
    minimum: 50,
    maximum: 60_000,
    description:
      "Deadline of resolving a host name, in milliseconds. The default is the contract's value; tests shorten it.",
  }),
  SWEEP_INTERVAL_MS: Type.Integer({
    default: 5000,
    minimum: 50,
    maximum: 10_000,
    description: 'Interval between scans for due deliveries without a job in Redis, in milliseconds.',
  }),
  ...healthSettings,
  ...processSettings,
  SHUTDOWN_DEADLINE_MS: Type.Integer({
    default: 15_000,
    minimum: 100,
    maximum: 600_000,
    description:
      'How long the process waits for running attempts after SIGTERM, in milliseconds. One attempt may take 10 s.',
  }),
});

export type WebhookWorkerConfig = Static<typeof WebhookWorkerConfig>;
