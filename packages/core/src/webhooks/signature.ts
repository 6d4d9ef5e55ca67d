import { createHmac } from 'node:crypto';

/**
 * The value of the signature header, `t=<Unix seconds>,v1=<lowercase hexadecimal HMAC-SHA256>` (specification,
 * section 6). The key is the whole secret, its `whsec_` included, as UTF-8.
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

/** A secret as customers get it. @param randomBytes 32 of them, from a cryptographic source. */
export function generateSigningSecret(randomBytes: Uint8Array): string {
  if (randomBytes.length !== 32) throw new RangeError('A signing secret is made of 32 random bytes.');
  return `whsec_${Buffer.from(randomBytes).toString('base64')}`;
}
