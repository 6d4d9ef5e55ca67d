import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { connectClient, type TestClient } from '../client.testkit.js';
import { startTestSignaling, type Invited, type TestInstance, type TestSignaling } from '../signaling.testkit.js';

let kit: TestSignaling;
beforeAll(async () => {
  kit = await startTestSignaling();
});
afterAll(() => kit.close());

/** Refills so slowly that no token comes back while a test runs. */
const SLOW = { perMinute: 1, burst: 5 };
const SECRET = () => randomBytes(32).toString('base64url');
const UNKNOWN_SESSION = 'sess_01h455vb4pex5vsknk084sn02q';

async function send(
  instance: TestInstance,
  message: object,
  headers: Record<string, string> = {},
): Promise<TestClient> {
  const client = await connectClient(instance.url, { headers });
  client.send(message);
  return client;
}

/** Resolves to how an arrival ended: `welcome`, or the close reason. */
async function outcomeOf(client: TestClient): Promise<string> {
  await eventually(() => client.of('welcome').length > 0 || client.closed !== null);
  return client.of('welcome').length > 0 ? 'welcome' : client.closed!.reason;
}

const joinAs = async (instance: TestInstance, { token }: Invited) =>
  outcomeOf(await send(instance, { type: 'join', token }));
const resumeAs = async (instance: TestInstance, sessionId: string, resumeSecret: string, headers = {}) =>
  outcomeOf(await send(instance, { type: 'resume', sessionId, resumeSecret }, headers));

/** Counts the admission and resumption statements that an instance sends to PostgreSQL from now on. */
function countStatements(instance: TestInstance): () => number {
  const { sql } = instance.deps.database;
  const { $queryRaw } = sql;
  let count = 0;
  sql.$queryRaw = ((...args: Parameters<typeof $queryRaw>) => {
    const text = Array.isArray(args[0]) ? args[0].join('') : String((args[0] as { sql?: string }).sql);
    if (/resume_secret_hash|join_count/.test(text)) count += 1;
    return $queryRaw.apply(sql, args);
  }) as typeof $queryRaw;
  return () => count;
}

describe('joins of one participant', () => {
  test('are limited across all instances, with a close reason that says how long to wait', async () => {
    const arrivals = { joins: SLOW };
    const [a, b] = await Promise.all([kit.start({ arrivals }), kit.start({ arrivals })]);
    const roomId = await kit.newRoom();
    const ada = await kit.invite(roomId);
    const outcomes = [];
    for (let n = 0; n < 12; n++) outcomes.push(await joinAs(n % 2 === 0 ? a : b, ada));
    expect(outcomes).toEqual([...Array(5).fill('welcome'), ...Array(7).fill('too_many_attempts')]);
    const refused = await send(a, { type: 'join', token: ada.token });
    const closing = await refused.untilClosed('too_many_attempts');
    expect(closing).toMatchObject({ reconnect: 'resume', retryAfterSeconds: expect.any(Number) });
    expect(closing!.retryAfterSeconds).toBeGreaterThan(1);
    expect(refused.closed).toMatchObject({ code: 4016 });
    // The session of the fifth join goes on, and the refused joins wrote nothing.
    const joined = (await kit.events(roomId)).filter(({ type }) => type === 'participant.joined');
    expect(joined).toHaveLength(5);
    expect(await kit.database.prisma.participantSession.count({ where: { roomId, endedAt: null } })).toBe(1);
    // Another participant can still join the room from the same address.
    expect(await joinAs(a, await kit.invite(roomId))).toBe('welcome');
  });

  test('cost no query while they are refused, are counted, and are logged at a bounded rate', async () => {
    const instance = await kit.start({ arrivals: { joins: SLOW } });
    const ada = await kit.invite(await kit.newRoom());
    for (let n = 0; n < 6; n++) await joinAs(instance, ada);
    const statements = countStatements(instance);
    const startedAt = performance.now();
    const outcomes = await Promise.all(Array.from({ length: 100 }, () => joinAs(instance, ada)));
    const seconds = (performance.now() - startedAt) / 1000;
    expect(new Set(outcomes)).toEqual(new Set(['too_many_attempts']));
    expect(statements()).toBe(0);
    expect(await instance.metrics()).toContain(
      'callplane_signaling_limited_total{limit="participant",app="signaling"} 101',
    );
    const lines = instance.log().split('"message":"arrival refused"').length - 1;
    expect(lines).toBeGreaterThan(0);
    expect(lines).toBeLessThanOrEqual(seconds + 3);
  });

  test('are admitted ten times in a row with the default settings', async () => {
    const instance = await kit.start({ arrivals: { joins: { perMinute: 20, burst: 10 } } });
    const ada = await kit.invite(await kit.newRoom());
    for (let n = 0; n < 10; n++) expect(await joinAs(instance, ada)).toBe('welcome');
  });

  test('are refused without a query for a while after their participant was not found', async () => {
    const instance = await kit.start();
    const ada = await kit.invite(await kit.newRoom());
    const ghost = await kit.invite(await kit.newRoom(), { claims: { sub: 'part_01h455vb4pex5vsknk084sn02q' } });
    expect(await joinAs(instance, ghost)).toBe('invalid_token');
    const statements = countStatements(instance);
    expect(await joinAs(instance, ghost)).toBe('too_many_attempts');
    expect(statements()).toBe(0);
    expect(await joinAs(instance, ada)).toBe('welcome');
  });
});

describe('resumptions of one session', () => {
  test('are limited, while the session and its current connection go on', async () => {
    const instance = await kit.start({ arrivals: { resumptions: SLOW } });
    const { welcome } = await kit.enter(instance.url, await kit.newRoom());
    const outcomes = [];
    for (let n = 0; n < 8; n++) outcomes.push(await resumeAs(instance, welcome.sessionId, welcome.resumeSecret));
    expect(outcomes).toEqual([...Array(5).fill('welcome'), ...Array(3).fill('too_many_attempts')]);
    const row = await kit.database.prisma.participantSession.findUniqueOrThrow({ where: { id: welcome.sessionId } });
    expect(row).toMatchObject({ endedAt: null, disconnectedAt: null, connection: 6 });
  });
});

describe('failed arrivals from one address', () => {
  test('cost one statement with a wrong secret, and none with an implausible one', async () => {
    const instance = await kit.start();
    const { welcome } = await kit.enter(instance.url, await kit.newRoom());
    const statements = countStatements(instance);
    expect(await resumeAs(instance, UNKNOWN_SESSION, SECRET())).toBe('invalid_session');
    expect(await resumeAs(instance, welcome.sessionId, SECRET())).toBe('invalid_session');
    expect(statements()).toBe(2);
    for (const [sessionId, secret] of [
      [UNKNOWN_SESSION, 'short'],
      [UNKNOWN_SESSION, `${SECRET()}x`],
      ['sess_x', SECRET()],
      [`${UNKNOWN_SESSION}0`, SECRET()],
      ['room_01h455vb4pex5vsknk084sn02q', SECRET()],
    ] as const) {
      expect(await resumeAs(instance, sessionId, secret)).toBe('invalid_session');
    }
    expect(statements()).toBe(2);
  });

  test('beyond the limit are refused without a query, while valid tokens still join', async () => {
    const instance = await kit.start({ arrivals: { failures: SLOW } });
    const roomId = await kit.newRoom();
    const ada = await kit.invite(roomId);
    for (let n = 0; n < 5; n++) expect(await resumeAs(instance, UNKNOWN_SESSION, SECRET())).toBe('invalid_session');
    const statements = countStatements(instance);
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, () => resumeAs(instance, UNKNOWN_SESSION, SECRET())),
    );
    expect(new Set(outcomes)).toEqual(new Set(['too_many_attempts']));
    expect(await joinAs(instance, { ...ada, token: `${ada.token}x` })).toBe('too_many_attempts');
    expect(statements()).toBe(0);
    expect(await joinAs(instance, ada)).toBe('welcome');
    expect(await instance.metrics()).toContain(
      'callplane_signaling_limited_total{limit="address",app="signaling"} 101',
    );
  });

  test('share a bucket for bad tokens and bad secrets, but not for expired tokens and valid resumptions', async () => {
    const instance = await kit.start({ arrivals: { failures: SLOW } });
    const roomId = await kit.newRoom();
    const { welcome } = await kit.enter(instance.url, roomId);
    const expired = await kit.invite(roomId, { claims: { exp: Math.floor(Date.now() / 1000) - 60 } });
    for (let n = 0; n < 6; n++) {
      expect(await joinAs(instance, expired)).toBe('token_expired');
      expect(await resumeAs(instance, welcome.sessionId, welcome.resumeSecret)).toBe('welcome');
    }
    const bad = { ...expired, token: 'x.y.z' };
    for (let n = 0; n < 3; n++) expect(await joinAs(instance, bad)).toBe('invalid_token');
    for (let n = 0; n < 2; n++) expect(await resumeAs(instance, UNKNOWN_SESSION, 'short')).toBe('invalid_session');
    expect(await joinAs(instance, bad)).toBe('too_many_attempts');
    expect(await resumeAs(instance, welcome.sessionId, welcome.resumeSecret)).toBe('too_many_attempts');
  });

  test('are limited by the client address behind a trusted proxy, an IPv6 address by its /64', async () => {
    const instance = await kit.start({ arrivals: { failures: SLOW }, trustProxy: ['127.0.0.1'] });
    const from = (address: string) => resumeAs(instance, UNKNOWN_SESSION, SECRET(), { 'x-forwarded-for': address });
    for (let n = 0; n < 5; n++) expect(await from(`2001:db8::${n + 1}`)).toBe('invalid_session');
    expect(await from('2001:db8::ffff')).toBe('too_many_attempts');
    expect(await from('2001:db8:0:1::1')).toBe('invalid_session');
    expect(await from('192.0.2.1')).toBe('invalid_session');
  });
});
