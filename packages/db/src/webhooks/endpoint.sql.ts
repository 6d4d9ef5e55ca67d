import { Prisma } from '../generated/client.js';

/** The version of the secret that signs the runs which begin now, of the endpoint `e`. */
export const SIGNING_KEY_VERSION = Prisma.sql`CASE WHEN e.next_activates_at <= now() THEN e.next_signing_key_version
  ELSE e.signing_key_version END`;

const WAITS = Prisma.sql`e.next_activates_at > now()`;

/** The columns of a `WebhookEndpointState`, of the endpoint `e`. A next secret shows only until its activation. */
export const ENDPOINT_COLUMNS = Prisma.sql`e.id, e.url, e.events, e.description, e.enabled,
  e.disabled_reason AS "disabledReason", ${SIGNING_KEY_VERSION} AS "signingKeyVersion",
  CASE WHEN ${WAITS} THEN e.next_signing_key_version END AS "nextSigningKeyVersion",
  CASE WHEN ${WAITS} THEN e.next_activates_at END AS "nextActivatesAt", e.ordering,
  e.max_per_second AS "maxPerSecond", e.max_concurrent AS "maxConcurrent", e.standard_webhooks AS "standardWebhooks",
  e.retry_rejected AS "retryRejected", e.failing_since AS "failingSince", e.created_at AS "createdAt", e.updated_at AS "updatedAt"`;
