import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { startTestCoturn, turnCredential, type TestServer } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';

let coturn: TestServer & { host: string; secret: string };
let api: TestApi;
beforeAll(async () => {
  coturn = await startTestCoturn();
  const urls = (scheme: string) => `${scheme}:${coturn.host}:${coturn.port}`;
  api = await startTestApi({
    STUN_URLS: urls('stun'),
    TURN_URLS: `${urls('turn')}?transport=udp,${urls('turn')}?transport=tcp`,
    TURN_SECRET: coturn.secret,
    TURN_TTL_SECONDS: '600',
  });
});

const issue = (body: object = {}) => api.call('POST', '/v1/turn/credentials', { body });

/** Allocates a relay with coturn's own client. Resolves to whether coturn granted it. */
async function allocates(username: string, credential: string, transport: 'udp' | 'tcp'): Promise<boolean> {
  const args = [
    '-y',
    '-c',
    '-n',
    '2',
    '-m',
    '1',
    ...(transport === 'tcp' ? ['-t'] : []),
    '-u',
    username,
    '-w',
    credential,
    '-p',
    String(coturn.port),
    coturn.host,
  ];
  try {
    await promisify(execFile)('turnutils_uclient', args, { timeout: 20_000 });
    return true;
  } catch {
    return false;
  }
}

describe('POST /v1/turn/credentials', () => {
  test('issues credentials for the environment on an empty object', async () => {
    const response = await issue();
    expect(response.status).toBe(201);
    const [expiry, environmentId, random] = response.body.username.split(':');
    expect(environmentId).toBe(api.tenant.environmentId);
    expect(random).toMatch(/^[0-9a-f]{16}$/);
    expect((await issue()).body.username).not.toBe(response.body.username);
    expect(response.body.expiresAt).toBe(new Date(Number(expiry) * 1000).toISOString());
    expect(response.body.ttlSeconds).toBe(600);
    expect(response.body.iceServers).toEqual([
      { urls: [`stun:${coturn.host}:${coturn.port}`] },
      {
        urls: [`turn:${coturn.host}:${coturn.port}?transport=udp`, `turn:${coturn.host}:${coturn.port}?transport=tcp`],
        username: response.body.username,
        credential: expect.stringMatching(/^[A-Za-z0-9+/]{27}=$/),
        credentialType: 'password',
      },
    ]);
    expect(await api.logAfter(response)).not.toContain(response.body.iceServers[1].credential);
  });

  test('issues credentials that a real coturn accepts over UDP and TCP, unless altered or expired', async () => {
    const { username, iceServers } = (await issue()).body;
    const { credential } = iceServers[1];
    expect(await allocates(username, credential, 'udp')).toBe(true);
    expect(await allocates(username, credential, 'tcp')).toBe(true);
    expect(await allocates(`${username}x`, credential, 'udp')).toBe(false);
    expect(await allocates(username, `${credential[0] === 'A' ? 'B' : 'A'}${credential.slice(1)}`, 'udp')).toBe(false);
    const expired = turnCredential(coturn.secret, api.tenant.environmentId, -3000);
    expect(await allocates(expired.username, expired.credential, 'udp')).toBe(false);
  });

  test('issues session credentials only for an active session of the room and tenant', async () => {
    const room = await api.room();
    const other = await api.room();
    const { participantId } = (await api.call('POST', `/v1/rooms/${room}/tokens`, { body: { participantName: 'Ada' } }))
      .body;
    const sessionId = newId('session');
    await api.database.prisma.participantSession.create({
      data: {
        id: sessionId,
        environmentId: api.tenant.environmentId,
        roomId: room,
        participantId,
        startedAt: new Date(),
      },
    });
    const response = await issue({ roomId: room, sessionId });
    expect(response.status).toBe(201);
    expect(response.body.username.split(':')[1]).toBe(sessionId);

    const refused = async (body: object, key?: string) => {
      const { status, body: answer } = await api.call('POST', '/v1/turn/credentials', {
        body,
        ...(key === undefined ? {} : { key }),
      });
      return [status, answer.error.code];
    };
    const notFound = [404, 'SESSION_NOT_FOUND'];
    expect(await refused({ roomId: other, sessionId })).toEqual(notFound);
    expect(await refused({ roomId: room, sessionId: 'sess_0' })).toEqual(notFound);
    expect(await refused({ roomId: room, sessionId }, (await api.newTenant()).key)).toEqual(notFound);
    await api.database.prisma.participantSession.update({
      where: { id: sessionId },
      data: { endedAt: new Date(), endReason: 'left' },
    });
    expect(await refused({ roomId: room, sessionId })).toEqual(notFound);
  });

  test('rejects one id without the other, and names the missing id', async () => {
    expect((await issue({ roomId: 'room_1', x: 1 })).body.error.details).toEqual(
      expect.arrayContaining([
        { path: 'body.sessionId', message: 'is required together with roomId' },
        { path: 'body.x', message: 'is not a known field' },
      ]),
    );
    expect((await issue({ sessionId: 'sess_1' })).body.error.details.map((d: { path: string }) => d.path)).toEqual([
      'body.roomId',
    ]);
    expect((await issue({ roomId: 'a b', sessionId: 1 })).body.error.details).toHaveLength(2);
    expect((await issue({ roomId: null, sessionId: null })).status).toBe(400);
  });
});
