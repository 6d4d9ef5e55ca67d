import { createHmac } from 'node:crypto';

/**
 * Computes the value of the signature header, `t=<Unix seconds>,v1=<lowercase hexadecimal HMAC-SHA256>` (specification,
 * section 6). The key is the whole secret, including its `whsec_`, as UTF-8.
 */
export function signDelivery(input: {
  secret: string;
  timestampUnixSeconds: number;
  deliveryId: string;
  replayCount: number;
  body: Buffer | string;
}): string {
  const { secret, timestampUnixSeconds, deliveryId, replayCount, body } = input;
  const hmac = createHmac('sha256', secret)
    .update(`${timestampUnixSeconds}.${deliveryId}.${replayCount}.`)
    .update(body)
    .digest('hex');
  return `t=${timestampUnixSeconds},v1=${hmac}`;
}

/** Names of the headers of the Standard Webhooks specification. */
export const STANDARD_WEBHOOKS_HEADERS = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const;

/**
 * Computes the headers of the Standard Webhooks specification. Unlike the contract's own signature, the key is the
 * decoded secret without `whsec_`, and the signed content begins with the id of the event.
 */
export function standardWebhooksHeaders(input: {
  secret: string;
  timestampUnixSeconds: number;
  eventId: string;
  body: Buffer | string;
}): Record<string, string> {
  const { secret, timestampUnixSeconds, eventId, body } = input;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const hmac = createHmac('sha256', key).update(`${eventId}.${timestampUnixSeconds}.`).update(body).digest('base64');
  return {
    [STANDARD_WEBHOOKS_HEADERS.id]: eventId,
    [STANDARD_WEBHOOKS_HEADERS.timestamp]: String(timestampUnixSeconds),
    [STANDARD_WEBHOOKS_HEADERS.signature]: `v1,${hmac}`,
  };
}

/** Generates a secret in the form that customers get. @param randomBytes 32 bytes from a cryptographic source. */
export function generateSigningSecret(randomBytes: Uint8Array): string {
  if (randomBytes.length !== 32) throw new RangeError('A signing secret is made of 32 random bytes.');
  return `whsec_${Buffer.from(randomBytes).toString('base64')}`;
}
