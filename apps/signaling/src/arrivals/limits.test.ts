import { randomBytes } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { connectClient, type TestClient } from '../client.testkit.js';
import { startTestSignaling, type Invited, type TestInstance, type TestSignaling } from '../signaling.testkit.js';

let kit: TestSignaling;
/** Two gateways that allow five arrivals of each kind, and refill so slowly that no token comes back during a test. */
let instance: TestInstance;
let other: TestInstance;
beforeAll(async () => {
  kit = await startTestSignaling();
  const limits = ['JOINS', 'RESUMPTIONS', 'FAILED_ARRIVALS'].flatMap((name) => [
    [`RATE_LIMIT_${name}_PER_MINUTE`, '1'],
    [`RATE_LIMIT_${name}_BURST`, '5'],
  ]);
  const settings = { ...Object.fromEntries(limits), TRUST_PROXY: '127.0.0.1' };
  [instance, other] = await Promise.all([kit.start(settings), kit.start(settings)]);
});
/** The client's address, another one for each test. */
let address: string;
let tests = 0;
beforeEach(() => {
  tests += 1;
  address = `192.0.2.${tests}`;
});
const SECRET = () => randomBytes(32).toString('base64url');
const UNKNOWN_SESSION = 'sess_01h455vb4pex5vsknk084sn02q';

async function send(to: TestInstance, message: object, headers: Record<string, string> = {}): Promise<TestClient> {
  const client = await connectClient(to.url, { 'x-forwarded-for': address, ...headers });
  client.send(message);
  return client;
}

/** Resolves to how an arrival ended: `welcome`, or the close reason. */
async function outcomeOf(client: TestClient): Promise<string> {
  await eventually(() => client.of('welcome').length > 0 || client.closed !== null);
  return client.of('welcome').length > 0 ? 'welcome' : client.closed!.reason;
}

const joinAs = async ({ token }: Invited, to = instance) => outcomeOf(await send(to, { type: 'join', token }));
const resumeAs = async (sessionId: string, resumeSecret: string, headers = {}) =>
  outcomeOf(await send(instance, { type: 'resume', sessionId, resumeSecret }, headers));

/** Runs `work` while no statement can read a participant or a session: a request with an answer costs no query. */
const withoutQueries = (work: () => Promise<void>): Promise<void> =>
  kit.database.transaction(async (tx) => {
    await tx.$executeRaw`LOCK TABLE participants, participant_sessions IN ACCESS EXCLUSIVE MODE`;
    await work();
  });

describe('joins of one participant', () => {
  test('are limited across all instances, with a close reason that says how long to wait', async () => {
    const roomId = await kit.newRoom();
    const ada = await kit.invite(roomId);
    const outcomes = [];
    for (let n = 0; n < 12; n++) outcomes.push(await joinAs(ada, n % 2 === 0 ? instance : other));
    expect(outcomes).toEqual([...Array(5).fill('welcome'), ...Array(7).fill('too_many_attempts')]);
    const refused = await send(instance, { type: 'join', token: ada.token });
    const closing = await refused.untilClosed('too_many_attempts');
    expect(closing).toMatchObject({ reconnect: 'resume', retryAfterSeconds: expect.any(Number) });
    expect(closing!.retryAfterSeconds).toBeGreaterThan(1);
    expect(refused.closed).toMatchObject({ code: 4016 });
    // The session of the fifth join continues, and the refused joins wrote nothing.
    const joined = (await kit.events(roomId)).filter(({ type }) => type === 'participant.joined');
    expect(joined).toHaveLength(5);
    expect(await kit.database.prisma.participantSession.count({ where: { roomId, endedAt: null } })).toBe(1);
    // Another participant can still join the room from the same address.
    expect(await joinAs(await kit.invite(roomId))).toBe('welcome');
  });

  test('cost no query while they are refused, are counted, and are logged at a bounded rate', async () => {
    const ada = await kit.invite(await kit.newRoom());
    const [logged, startedAt] = [instance.log().length, performance.now()];
    for (let n = 0; n < 6; n++) await joinAs(ada);
    const counter = 'callplane_signaling_limited_total{limit="participant"';
    const counted = await instance.valueOf(counter);
    await withoutQueries(async () => {
      const outcomes = await Promise.all(Array.from({ length: 100 }, () => joinAs(ada)));
      expect(new Set(outcomes)).toEqual(new Set(['too_many_attempts']));
    });
    expect((await instance.valueOf(counter)) - counted).toBe(100);
    // A refusal of the test before may have been logged less than a second ago.
    const lines = await eventually(async () => {
      await joinAs(ada);
      const count = instance.log().slice(logged).split('"message":"arrival refused"').length - 1;
      return count > 0 && count;
    });
    const seconds = (performance.now() - startedAt) / 1000;
    expect(lines).toBeLessThanOrEqual(seconds + 3);
  });

  test('are refused without a query for a while after their participant was not found', async () => {
    const ada = await kit.invite(await kit.newRoom());
    const ghost = await kit.invite(await kit.newRoom(), { claims: { sub: 'part_01h455vb4pex5vsknk084sn02q' } });
    expect(await joinAs(ghost)).toBe('invalid_token');
    await withoutQueries(async () => expect(await joinAs(ghost)).toBe('too_many_attempts'));
    expect(await joinAs(ada)).toBe('welcome');
  });
});

test('tests of the line of one participant have the pace of joins at a gateway, and leave its joins alone', async () => {
  const ada = await kit.invite(await kit.newRoom());
  const reasons: string[] = [];
  for (let n = 0; n < 7; n++) {
    const client = await send(instance, { type: 'test', token: ada.token });
    reasons.push((await client.untilClosed())!.reason);
  }
  expect(reasons).toEqual([...Array(5).fill('left'), ...Array(2).fill('too_many_attempts')]);
  expect(await joinAs(ada)).toBe('welcome');
});

describe('resumptions of one session', () => {
  test('are limited, while the session and its current connection continue', async () => {
    const { welcome } = await kit.enter(instance.url, await kit.newRoom());
    const outcomes = [];
    for (let n = 0; n < 8; n++) outcomes.push(await resumeAs(welcome.sessionId, welcome.resumeSecret));
    expect(outcomes).toEqual([...Array(5).fill('welcome'), ...Array(3).fill('too_many_attempts')]);
    const row = await kit.database.prisma.participantSession.findUniqueOrThrow({ where: { id: welcome.sessionId } });
    expect(row).toMatchObject({ endedAt: null, disconnectedAt: null, connection: 6 });
  });
});

describe('failed arrivals from one address', () => {
  test('with a wrong secret are refused, and cost no query with an implausible one', async () => {
    const { welcome } = await kit.enter(instance.url, await kit.newRoom());
    expect(await resumeAs(UNKNOWN_SESSION, SECRET())).toBe('invalid_session');
    expect(await resumeAs(welcome.sessionId, SECRET())).toBe('invalid_session');
    await withoutQueries(async () => {
      for (const [n, [sessionId, secret]] of [
        [UNKNOWN_SESSION, 'short'],
        [UNKNOWN_SESSION, `${SECRET()}x`],
        ['sess_x', SECRET()],
        [`${UNKNOWN_SESSION}0`, SECRET()],
        ['room_01h455vb4pex5vsknk084sn02q', SECRET()],
      ].entries()) {
        const headers = { 'x-forwarded-for': `198.51.100.${n}` };
        expect(await resumeAs(sessionId!, secret!, headers)).toBe('invalid_session');
      }
    });
  });

  test('beyond the limit are refused without a query, while valid tokens still join', async () => {
    const roomId = await kit.newRoom();
    const ada = await kit.invite(roomId);
    for (let n = 0; n < 5; n++) expect(await resumeAs(UNKNOWN_SESSION, SECRET())).toBe('invalid_session');
    const counter = 'callplane_signaling_limited_total{limit="address"';
    const counted = await instance.valueOf(counter);
    await withoutQueries(async () => {
      const outcomes = await Promise.all(Array.from({ length: 100 }, () => resumeAs(UNKNOWN_SESSION, SECRET())));
      expect(new Set(outcomes)).toEqual(new Set(['too_many_attempts']));
      expect(await joinAs({ ...ada, token: `${ada.token}x` })).toBe('too_many_attempts');
    });
    expect(await joinAs(ada)).toBe('welcome');
    expect((await instance.valueOf(counter)) - counted).toBe(101);
  });

  test('share a bucket for bad tokens and bad secrets, but not for expired tokens and valid resumptions', async () => {
    const roomId = await kit.newRoom();
    const { welcome } = await kit.enter(instance.url, roomId);
    const expired = await kit.invite(roomId, { claims: { exp: Math.floor(Date.now() / 1000) - 60 } });
    for (let n = 0; n < 4; n++) {
      expect(await joinAs(expired)).toBe('token_expired');
      expect(await resumeAs(welcome.sessionId, welcome.resumeSecret)).toBe('welcome');
    }
    const bad = { ...expired, token: 'x.y.z' };
    for (let n = 0; n < 3; n++) expect(await joinAs(bad)).toBe('invalid_token');
    for (let n = 0; n < 2; n++) expect(await resumeAs(UNKNOWN_SESSION, 'short')).toBe('invalid_session');
    expect(await joinAs(bad)).toBe('too_many_attempts');
    expect(await resumeAs(welcome.sessionId, welcome.resumeSecret)).toBe('too_many_attempts');
  });

  test('are limited by the client address behind a trusted proxy, an IPv6 address by its /64', async () => {
    const from = (client: string) => resumeAs(UNKNOWN_SESSION, SECRET(), { 'x-forwarded-for': client });
    for (let n = 0; n < 5; n++) expect(await from(`2001:db8::${n + 1}`)).toBe('invalid_session');
    expect(await from('2001:db8::ffff')).toBe('too_many_attempts');
    expect(await from('2001:db8:0:1::1')).toBe('invalid_session');
    expect(await from('203.0.113.1')).toBe('invalid_session');
  });
});
