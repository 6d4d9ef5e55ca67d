import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { generateSigningSecret, signDelivery } from './request.js';

describe('the signature of a delivery', () => {
  test('equals the result of openssl', () => {
    // printf '%s' '1767225600.dlv_1.0.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_c2VjcmV0
    expect(
      signDelivery({
        secret: 'whsec_c2VjcmV0',
        timestampUnixSeconds: 1767225600,
        deliveryId: 'dlv_1',
        replayCount: 0,
        body: '{"id":"evt_1"}',
      }),
    ).toBe('t=1767225600,v1=d2e28a66add5574788d128ae5b4d2220cce06b06a7a20be7034e491fea94f699');
  });

  test('uses a secret of whsec_ and 32 bytes in standard base64', () => {
    expect(generateSigningSecret(Buffer.alloc(32, 0xff))).toBe(`whsec_${'/'.repeat(42)}8=`);
    expect(generateSigningSecret(randomBytes(32))).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(() => generateSigningSecret(randomBytes(16))).toThrow(RangeError);
  });
});
