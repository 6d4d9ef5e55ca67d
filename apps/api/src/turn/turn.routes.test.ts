import { beforeAll, describe, expect, test } from '@jest/globals';
import { endOne } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';

/** No server listens there. tests/turn.test.ts shows that one accepts the credentials. */
const SERVER = 'turn.example.com:3478';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({
    STUN_URLS: `stun:${SERVER}`,
    TURN_URLS: `turn:${SERVER}?transport=udp,turn:${SERVER}?transport=tcp`,
    TURN_SECRET: 'test-turn-secret',
    TURN_TTL_SECONDS: '600',
  });
});

const issue = (body: object = {}) => api.call('POST', '/v1/turn/credentials', { body });

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
      { urls: [`stun:${SERVER}`] },
      {
        urls: [`turn:${SERVER}?transport=udp`, `turn:${SERVER}?transport=tcp`],
        username: response.body.username,
        credential: expect.stringMatching(/^[A-Za-z0-9+/]{27}=$/),
        credentialType: 'password',
      },
    ]);
    expect(await api.logAfter(response)).not.toContain(response.body.iceServers[1].credential);
  });

  test('issues session credentials only for an active session of the room and tenant', async () => {
    const [room, other] = [await api.room(), await api.room()];
    const joined = await api.join(room, await api.invite(room));
    const { sessionId } = joined;
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
    await endOne(api.database, joined, 'left', new Date());
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
  });
});
