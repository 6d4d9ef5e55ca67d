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

/** Generates a secret in the form that customers get. @param randomBytes 32 bytes from a cryptographic source. */
export function generateSigningSecret(randomBytes: Uint8Array): string {
  if (randomBytes.length !== 32) throw new RangeError('A signing secret is made of 32 random bytes.');
  return `whsec_${Buffer.from(randomBytes).toString('base64')}`;
}
