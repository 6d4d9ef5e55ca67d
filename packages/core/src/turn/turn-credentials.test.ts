import { describe, expect, test } from '@jest/globals';
import { issueTurnCredentials } from './turn-credentials.js';

const now = new Date('2026-01-01T00:00:00.750Z');
const settings = { stunUrls: ['stun:a'], turnUrls: ['turn:a', 'turn:b'], secret: 'north', ttlSeconds: 3600 };

describe('TURN credentials', () => {
  test('follow the scheme of coturn, computed here by hand', () => {
    const issued = issueTurnCredentials(settings, 'env_1', now);
    expect(issued).toEqual({
      expiresAt: new Date('2026-01-01T01:00:00.000Z'),
      username: '1767229200:env_1',
      ttlSeconds: 3600,
      iceServers: [
        { urls: ['stun:a'] },
        {
          urls: ['turn:a', 'turn:b'],
          username: '1767229200:env_1',
          // printf '1767229200:env_1' | openssl dgst -sha1 -hmac north -binary | base64
          credential: 'UzchI8XfADjlGheCSFLuxhdYcfg=',
          credentialType: 'password',
        },
      ],
    });
  });

  test('without a secret there is STUN alone, and without any server nothing', () => {
    expect(issueTurnCredentials({ ...settings, secret: null }, 'env_1', now).iceServers).toEqual([
      { urls: ['stun:a'] },
    ]);
    expect(issueTurnCredentials({ ...settings, turnUrls: [], stunUrls: [] }, 'env_1', now).iceServers).toEqual([]);
  });
});
