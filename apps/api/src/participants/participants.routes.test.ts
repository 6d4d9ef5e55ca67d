import { createPublicKey } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { parseMasterKeys } from '@callplane/core';
import { requestErasure, rotateSigningKey } from '@callplane/db';
import { publishNotice } from '@callplane/queue';
import { eventually, sessionRow, TEST_ENCRYPTION_KEYS } from '@callplane/testing';
import jwt from 'jsonwebtoken';
import { startTestApi, type TestApi } from '../api.testkit.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

const issue = (room: string, body: object = { participantName: 'Ada' }) =>
  api.call('POST', `/v1/rooms/${room}/tokens`, { body });

/** Verifies a token as a gateway does, with the published keys only. */
async function verify(token: string): Promise<jwt.JwtPayload> {
  const { keys } = (await (await fetch(`${api.url}/.well-known/jwks.json`)).json()) as {
    keys: { kid: string }[];
  };
  const { kid } = jwt.decode(token, { complete: true })!.header;
  const jwk = keys.find((key) => key.kid === kid)!;
  return jwt.verify(token, createPublicKey({ key: jwk as never, format: 'jwk' }), {
    algorithms: ['ES256'],
    audience: 'callplane-signaling',
    issuer: 'callplane',
  }) as jwt.JwtPayload;
}

/** Records a connection as a gateway does at the first join. */
async function connect(participantId: string, room: string, at: Date, left?: Date): Promise<string> {
  await api.database.prisma.participant.update({
    where: { id: participantId },
    data: { connectedAt: at, leftAt: left ?? null },
  });
  const end = left === undefined ? {} : { endedAt: left, endReason: 'left' };
  const { id: tokenId } = await api.database.prisma.participantToken.findFirstOrThrow({ where: { participantId } });
  const data = sessionRow(api.tenant, { roomId: room, participantId }, { startedAt: at, tokenId, ...end });
  return (await api.database.prisma.participantSession.create({ data })).id;
}

describe('POST /v1/rooms/{roomId}/tokens', () => {
  test('issues a token with the specified claims that the published keys verify', async () => {
    const room = await api.room();
    const before = Math.floor(Date.now() / 1000);
    const response = await issue(room, {
      participantName: '  Ada ',
      permissions: ['video:publish', 'room:join'],
      metadata: { seat: 1 },
      ttlSeconds: 60,
      externalId: 'user-17',
      role: ' host ',
      region: 'eu-west',
    });
    expect(response.status).toBe(201);
    expect(Object.keys(response.body).sort()).toEqual(['expiresAt', 'participantId', 'token', 'tokenId']);
    const claims = await verify(response.body.token);
    expect(claims).toEqual({
      iss: 'callplane',
      aud: 'callplane-signaling',
      sub: response.body.participantId,
      jti: response.body.tokenId,
      iat: expect.any(Number),
      nbf: claims.iat,
      exp: claims.iat! + 60,
      projectId: api.tenant.projectId,
      environmentId: api.tenant.environmentId,
      roomId: room,
      name: 'Ada',
      permissions: ['video:publish', 'room:join'],
      region: 'eu-west',
    });
    expect(claims.iat! - before).toBeLessThanOrEqual(2);
    expect(response.body.expiresAt).toBe(new Date(claims.exp! * 1000).toISOString());
    const participant = await api.call('GET', `/v1/rooms/${room}/participants/${response.body.participantId}`);
    expect(participant.body).toMatchObject({
      externalId: 'user-17',
      name: 'Ada',
      metadata: { seat: 1 },
      role: 'host',
      leftAt: null,
    });
    expect(await api.logAfter(response)).not.toContain(response.body.token.split('.')[2]);
  });

  test('defaults to ten minutes, room:join and no external id, and creates a new identity on every call', async () => {
    const room = await api.room();
    const [one, two] = await Promise.all([issue(room), issue(room)]);
    expect(one.body.participantId).not.toBe(two.body.participantId);
    const claims = await verify(one.body.token);
    expect([claims.exp! - claims.iat!, claims['permissions']]).toEqual([600, ['room:join']]);
    const { body } = await api.call('GET', `/v1/rooms/${room}/participants/${one.body.participantId}`);
    expect(body).toMatchObject({ externalId: null, metadata: {}, roomId: room });
  });

  test('gives the participant that it names another token, with its permissions, and applies the given fields', async () => {
    const room = await api.room();
    const permissions = ['room:join', 'messages:send'];
    const first = (await issue(room, { participantName: 'Ada', permissions, metadata: { seat: 1 }, role: 'host' }))
      .body;
    const { participantId } = first;
    const path = `/v1/rooms/${room}/participants/${participantId}`;
    await api.call('PATCH', path, { body: { permissions: ['room:join', 'audio:publish'] } });
    const again = await issue(room, {
      participantName: 'Ada L.',
      participantId,
      externalId: 'user-1',
      ttlSeconds: 3600,
    });
    expect([again.status, again.body.participantId]).toEqual([201, participantId]);
    expect(await verify(again.body.token)).toMatchObject({
      sub: participantId,
      jti: again.body.tokenId,
      name: 'Ada L.',
      permissions: ['room:join', 'audio:publish'],
    });
    expect((await api.call('GET', path)).body).toMatchObject({
      name: 'Ada L.',
      externalId: 'user-1',
      metadata: { seat: 1 },
      role: 'host',
      permissions: ['room:join', 'audio:publish'],
    });
    for (const { tokenId } of [first, again.body]) await api.join(room, { participantId, tokenId });
    const { data } = (await api.call('GET', `${path}/sessions`)).body;
    expect(data).toHaveLength(2);
    const listed = await api.pages(`/v1/rooms/${room}/tokens?limit=1`);
    expect(listed.map(({ id, state }) => [id, state])).toEqual([
      [again.body.tokenId, 'used'],
      [first.tokenId, 'used'],
    ]);
  });

  test('issues none for a participant who was removed, erased, or belongs to another room', async () => {
    const room = await api.room();
    const code = async (at: string, participantId: string) =>
      (await issue(at, { participantName: 'Ada', participantId })).body.error.code;
    const [removed, erased] = [(await issue(room)).body, (await issue(room)).body];
    await api.call('DELETE', `/v1/rooms/${room}/participants/${removed.participantId}`);
    await requestErasure(api.database, erased.participantId, new Date());
    expect(await code(room, removed.participantId)).toBe('PARTICIPANT_REMOVED');
    expect(await code(room, erased.participantId)).toBe('PARTICIPANT_REMOVED');
    const path = `/v1/rooms/${room}/participants/${erased.participantId}`;
    expect((await api.call('GET', path)).body).toMatchObject({ name: 'Erased' });
    expect(await code(await api.room(), erased.participantId)).toBe('PARTICIPANT_NOT_FOUND');
    expect(await code('room_0', erased.participantId)).toBe('ROOM_NOT_FOUND');
    await api.call('DELETE', `/v1/rooms/${room}`);
    expect(await code(room, removed.participantId)).toBe('ROOM_ENDED');
  });

  test('needs room:join among the permissions', async () => {
    const response = await issue(await api.room(), { participantName: 'Ada', permissions: ['audio:publish'] });
    const details = [{ path: 'body.permissions', message: 'must include room:join' }];
    expect([response.status, response.body.error.details]).toEqual([400, details]);
  });

  test('publishes a new signing key before it signs, and keeps old tokens verifiable', async () => {
    const { prisma } = api.database;
    const room = await api.room();
    const newToken = async () => (await issue(room)).body.token as string;
    const kidOf = (token: string) => jwt.decode(token, { complete: true })!.header.kid;
    const published = async () =>
      (await api.call('GET', '/.well-known/jwks.json', { key: null })).body.keys as object[];
    const old = await newToken();
    await rotateSigningKey(api.database, parseMasterKeys([TEST_ENCRYPTION_KEYS]), new Date(), 3600);
    await publishNotice(api.redis, 'signingKeysChanged', '');
    const keys = await eventually(async () => {
      const all = await published();
      return all.length === 2 && all;
    });
    for (const key of keys) expect(Object.keys(key).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
    expect(kidOf(await newToken())).toBe(kidOf(old));

    const activatesAt = new Date(Date.now() - 1000);
    await prisma.signingKey.updateMany({ where: { status: 'next' }, data: { activatesAt } });
    await publishNotice(api.redis, 'signingKeysChanged', '');
    await eventually(async () => kidOf(await newToken()) !== kidOf(old));
    expect((await verify(old)).sub).toMatch(/^part_/);
  });
});

describe('participants', () => {
  test('exist once their token is issued, leave when it expires, and appear in lists once they connect', async () => {
    const room = await api.room();
    const { participantId } = (await issue(room)).body;
    const path = `/v1/rooms/${room}/participants/${participantId}`;
    const issued = (await api.call('GET', path)).body;
    expect(issued.leftAt).toBeNull();
    expect((await api.call('GET', `/v1/rooms/${room}/participants`)).body.data).toEqual([]);

    const expiry = new Date('2026-01-01T00:00:00.000Z');
    await api.database.prisma.participant.update({ where: { id: participantId }, data: { tokenExpiresAt: expiry } });
    expect((await api.call('GET', path)).body).toMatchObject({
      joinedAt: issued.joinedAt,
      leftAt: expiry.toISOString(),
    });

    const at = new Date('2026-02-01T12:00:00.123Z');
    await connect(participantId, room, at);
    expect((await api.call('GET', path)).body).toMatchObject({ joinedAt: at.toISOString(), leftAt: null });
    expect(
      (await api.call('GET', `/v1/rooms/${room}/participants`)).body.data.map((p: { id: string }) => p.id),
    ).toEqual([participantId]);
  });

  test('are listed latest first, in stable pages, and filtered by status', async () => {
    const room = await api.room();
    const ids: string[] = [];
    for (let n = 0; n < 7; n++) {
      const { participantId } = (await issue(room)).body;
      // Two participants connect at the same instant: their ids determine the order.
      await connect(
        participantId,
        room,
        new Date(Date.UTC(2026, 0, 1, 0, 0, n === 3 ? 2 : n)),
        n % 2 === 1 ? new Date() : undefined,
      );
      ids.unshift(participantId);
    }
    const order = [...ids];
    const all = async (query: string) =>
      (await api.pages(`/v1/rooms/${room}/participants?limit=2${query}`)).map(({ id }) => id);
    expect(await all('')).toEqual(order);
    expect(await all('&status=left')).toEqual(order.filter((_, index) => (6 - index) % 2 === 1));
    expect(await all('&status=active')).toEqual(order.filter((_, index) => (6 - index) % 2 === 0));
    expect((await api.call('GET', '/v1/rooms/room_0/participants')).body.error.code).toBe('ROOM_NOT_FOUND');
  });

  test('are filtered by the exact external id', async () => {
    const room = await api.room();
    const made: string[] = [];
    for (const externalId of ['user-1', 'user-2', 'user-1', undefined]) {
      const { participantId } = (await issue(room, { participantName: 'Ada', ...(externalId && { externalId }) })).body;
      await connect(participantId, room, new Date(Date.UTC(2026, 0, 1, 0, 0, made.length)));
      made.unshift(participantId);
    }
    const list = async (query: string) => (await api.call('GET', `/v1/rooms/${room}/participants?${query}`)).body;
    const ids = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id);
    expect(ids(await list('externalId=user-1'))).toEqual([made[1], made[3]]);
    expect(ids(await list('externalId=user'))).toEqual([]);
    expect(ids(await list('externalId=user-1&status=left'))).toEqual([]);
  });

  test('get a 404 that names the missing resource', async () => {
    const room = await api.room();
    const other = await api.room();
    const { participantId } = (await issue(room)).body;
    const code = async (path: string) => (await api.call('GET', path)).body.error.code;
    expect(await code(`/v1/rooms/${room}/participants/part_0`)).toBe('PARTICIPANT_NOT_FOUND');
    expect(await code(`/v1/rooms/${other}/participants/${participantId}`)).toBe('PARTICIPANT_NOT_FOUND');
    expect(await code(`/v1/rooms/room_0/participants/${participantId}`)).toBe('ROOM_NOT_FOUND');
    expect(await code(`/v1/rooms/${room}/participants/${participantId}/runtime-operation`)).toBe('OPERATION_NOT_FOUND');
    const both = await api.call('GET', '/v1/rooms/a.b/participants/c.d');
    expect(both.body.error.details.map((d: { path: string }) => d.path)).toEqual(['path.roomId', 'path.participantId']);
  });
});

describe('DELETE /v1/rooms/{roomId}/participants/{participantId}', () => {
  test('blocks the identity and revokes its tokens in the transaction that accepts the removal', async () => {
    const room = await api.room();
    const { participantId, tokenId } = (await issue(room)).body;
    const path = `/v1/rooms/${room}/participants/${participantId}`;
    const removed = await api.call('DELETE', path);
    expect(removed.status).toBe(202);
    expect(removed.body).toMatchObject({ kind: 'participant.remove', status: 'pending', attempts: 0 });
    const token = await api.database.prisma.participantToken.findUniqueOrThrow({ where: { id: tokenId } });
    const participant = await api.database.prisma.participant.findUniqueOrThrow({ where: { id: participantId } });
    expect([token.revokedAt, participant.removedAt]).toEqual([expect.any(Date), expect.any(Date)]);
    expect((await api.call('DELETE', path)).body.id).toBe(removed.body.id);
    expect((await api.call('GET', `${path}/runtime-operation`)).body).toEqual(removed.body);
  });
});

describe('GET /v1/rooms/{roomId}/tokens', () => {
  test('lists issued tokens, newest first, with the rights that are left, in pages', async () => {
    const room = await api.room();
    const issued: { participantId: string; tokenId: string }[] = [];
    for (const participantName of ['unused', 'used', 'expired', 'revoked']) {
      issued.push((await issue(room, { participantName })).body);
    }
    const [, used = '', expired = '', revoked = ''] = issued.map(({ participantId }) => participantId);
    const usedAt = new Date(Date.UTC(2026, 0, 1));
    await connect(used, room, usedAt);
    await api.database.prisma.participantToken.updateMany({
      where: { participantId: expired },
      data: { createdAt: new Date(Date.now() - 2000), expiresAt: new Date(Date.now() - 1000) },
    });
    await api.call('DELETE', `/v1/rooms/${room}/participants/${revoked}`);
    const rows = await api.pages(`/v1/rooms/${room}/tokens?limit=3`);
    expect(rows.map(({ id }) => id)).toEqual(issued.map(({ tokenId }) => tokenId).reverse());
    for (const row of rows) expect(row.state).toBe(row.participantName);
    expect(rows[2]).toMatchObject({ usedAt: usedAt.toISOString(), revokedAt: null });
    expect(rows[0]).toMatchObject({ usedAt: null, revokedAt: expect.any(String) });
    expect((await api.call('GET', '/v1/rooms/room_0/tokens')).body.error.code).toBe('ROOM_NOT_FOUND');
    await api.call('DELETE', `/v1/rooms/${room}`);
    const { body } = await api.call('GET', `/v1/rooms/${room}/tokens`);
    expect(body.data.map(({ state }: { state: string }) => state)).toEqual([
      'revoked',
      'room_ended',
      'room_ended',
      'room_ended',
    ]);
  });
});
