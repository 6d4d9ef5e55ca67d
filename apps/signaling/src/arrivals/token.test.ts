import { createHmac, generateKeyPairSync } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import jwt from 'jsonwebtoken';
import { VerificationKeys, verifyToken, type VerificationJwk } from './token.js';

const NOW = new Date('2030-01-01T12:00:00.000Z');
const SECONDS = NOW.getTime() / 1000;
const EXPECTED = { issuer: 'callplane', audience: 'callplane-signaling' };
const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwk = (kid: string, key = own.publicKey) =>
  ({ ...(key.export({ format: 'jwk' }) as object), kid }) as VerificationJwk;
const CLAIMS = {
  iss: 'callplane',
  aud: 'callplane-signaling',
  sub: 'part_1',
  jti: 'tok_1',
  iat: SECONDS - 10,
  nbf: SECONDS - 10,
  exp: SECONDS + 60,
  projectId: 'proj_1',
  environmentId: 'env_1',
  roomId: 'room_1',
  name: 'Ada',
  permissions: ['room:join', 'messages:send'],
};
const sign = (claims: object = {}, { kid = 'k1', key = own.privateKey } = {}) =>
  jwt.sign(JSON.parse(JSON.stringify({ ...CLAIMS, ...claims })) as object, key, { algorithm: 'ES256', keyid: kid });

let keys: VerificationKeys;
beforeAll(() => {
  keys = new VerificationKeys(() => Promise.resolve([jwk('k1')]));
});
const verify = (token: string) => verifyToken(keys, EXPECTED, token, NOW);
const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a token', () => {
  test('that is valid yields the tenant, room, participant, permissions and region', async () => {
    expect(await verify(sign({ region: 'eu-west' }))).toEqual({
      ok: true,
      claims: {
        tenant: { projectId: 'proj_1', environmentId: 'env_1' },
        roomId: 'room_1',
        participantId: 'part_1',
        tokenId: 'tok_1',
        permissions: ['room:join', 'messages:send'],
        region: 'eu-west',
      },
    });
  });

  test('that has expired is refused as expired, with a tolerance for clock differences', async () => {
    expect(await verify(sign({ exp: SECONDS - 30 }))).toMatchObject({ ok: false, reason: 'token_expired' });
    expect(await verify(sign({ exp: SECONDS - 3, nbf: SECONDS + 3 }))).toMatchObject({ ok: true });
  });

  test('without a region, or with one that is not well-formed, has none', async () => {
    for (const region of [undefined, null, 7, '', 'EU', 'x'.repeat(33)]) {
      expect(await verify(sign({ region }))).toMatchObject({ ok: true, claims: { region: null } });
    }
  });

  test('loses permissions that the gateway does not know', async () => {
    expect(await verify(sign({ permissions: ['room:join', 'world:rule'] }))).toMatchObject({
      claims: { permissions: ['room:join'] },
    });
  });

  const none = `${base64url({ alg: 'none', kid: 'k1' })}.${base64url(CLAIMS)}.`;
  const confused = `${base64url({ alg: 'HS256', kid: 'k1' })}.${base64url(CLAIMS)}`;
  const spki = own.publicKey.export({ format: 'pem', type: 'spki' });
  test.each<[string, () => string]>([
    ['from another issuer', () => sign({ iss: 'somebody' })],
    ['for another audience', () => sign({ aud: 'else' })],
    ['that is not valid yet', () => sign({ nbf: SECONDS + 60 })],
    ['without room:join', () => sign({ permissions: ['audio:publish'] })],
    ['without a room', () => sign({ roomId: undefined })],
    ['with a malformed room id', () => sign({ roomId: "r' OR 1=1" })],
    ['without an expiry', () => sign({ exp: undefined })],
    ['signed by another key', () => sign({}, { key: other.privateKey })],
    ['with an unknown key id', () => sign({}, { kid: 'k9' })],
    ['without a signature', () => none],
    [
      'signed with the public key as an HMAC secret',
      () => `${confused}.${createHmac('sha256', spki).update(confused).digest('base64url')}`,
    ],
    ['that is not a JWT', () => 'hello'],
    ['with a truncated signature', () => sign().slice(0, -5)],
  ])('%s is not valid', async (_, token) => {
    expect(await verify(token())).toMatchObject({ ok: false, reason: 'invalid_token' });
  });
});

describe('the verification keys', () => {
  test('are loaded once for concurrent uses, again for an unknown id, but not for every unknown id', async () => {
    let nowMs = 0;
    let loads = 0;
    const published = [jwk('k1')];
    const ring = new VerificationKeys(
      () => {
        loads += 1;
        return Promise.resolve(published);
      },
      () => nowMs,
    );
    await Promise.all([ring.find('k1'), ring.find('k1')]);
    expect(loads).toBe(1);
    published.push(jwk('k2'));
    nowMs += 2000;
    expect(await ring.find('k2')).not.toBeNull();
    expect(loads).toBe(2);
    for (let n = 0; n < 100; n++) expect(await ring.find(`x${n}`)).toBeNull();
    expect(loads).toBe(2);
    ring.expire();
    await ring.find('k1');
    expect(loads).toBe(3);
  });

  test('are loaded again for a use after a rotation, even if a load from before the rotation is in progress', async () => {
    const answers: (() => void)[] = [];
    let published = [jwk('k1')];
    const ring = new VerificationKeys(() => {
      const read = published;
      return new Promise((resolve) => answers.push(() => resolve(read)));
    });
    const before = ring.find('k1');
    expect(answers).toHaveLength(1);
    published = [jwk('k2')];
    ring.expire();
    const after = [ring.find('k2'), ring.find('k1')];
    answers[0]!();
    expect(await before).not.toBeNull();
    await eventually(() => answers.length > 1);
    answers[1]!();
    expect(await after[0]).not.toBeNull();
    expect(await after[1]).toBeNull();
    expect(answers).toHaveLength(2);
  });

  test('cause an error instead of a refusal if they cannot be loaded', async () => {
    const away = new VerificationKeys(() => Promise.reject(new Error('away')));
    await expect(verifyToken(away, EXPECTED, sign(), NOW)).rejects.toThrow('away');
  });
});
