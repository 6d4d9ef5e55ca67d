import { describe, expect, test } from '@jest/globals';
import { newId } from '../ids/ids.js';
import { issueTurnCredentials, peerSubject, sessionOfUsername } from './turn-credentials.js';

const now = new Date('2026-01-01T00:00:00.750Z');
const settings = { stunUrls: ['stun:a'], turnUrls: ['turn:a', 'turn:b'], secret: 'north', ttlSeconds: 3600 };

describe('TURN credentials', () => {
  test('follow the scheme of coturn, as computed by openssl', () => {
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

  test('contain only STUN without a secret, and nothing without servers', () => {
    expect(issueTurnCredentials({ ...settings, secret: null }, 'env_1', now).iceServers).toEqual([
      { urls: ['stun:a'] },
    ]);
    expect(issueTurnCredentials({ ...settings, turnUrls: [], stunUrls: [] }, 'env_1', now).iceServers).toEqual([]);
  });

  test('have a username that yields a session id only for sessions', () => {
    const session = newId('session');
    const subjects = [session, peerSubject(session, 'publisher'), peerSubject(session, 'subscriber')];
    for (const subject of subjects) expect(sessionOfUsername(`1767229200:${subject}`)).toBe(session);
    const others = [
      ...[session, `:${session}`, `x:${session}`, `1767229200:${session}:1`, `1767229200:${session}x`],
      ...[`1767229200:1:${session}`, `1767229200:${session}\n`, `1767229200:${newId('room')}`, '1767229200:env_1:00'],
    ];
    expect(others.map(sessionOfUsername)).toEqual(others.map(() => null));
  });
});
