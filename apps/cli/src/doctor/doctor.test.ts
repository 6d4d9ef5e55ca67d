import { Database, type Backlog, type DatabaseFacts, type MediaNodeRow } from '@callplane/db';
import { systemClock } from '@callplane/runtime';
import { createTestDatabase, startTestRedis, TEST_ENCRYPTION_KEYS } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import { run } from '../program.js';
import {
  judgeDatabase,
  judgeMasterKeys,
  judgeMedia,
  judgeQueue,
  judgeRedis,
  judgeSchema,
  judgeSignaling,
  type Finding,
} from './findings.js';

const GOOD: DatabaseFacts = {
  ...{ versionNumber: 180_004, version: '18.4', now: new Date(), durable: true, connections: 10, connectionsMax: 100 },
  ...{ masterKeyIds: ['k1'], activeSigningKeys: 1, signalingInstances: 2 },
};
const NODE: MediaNodeRow = { id: 'm1', state: 'up', draining: false, rooms: 1, sessions: 2, checkedAt: new Date() };
const IDLE: Backlog = { queue: 'webhook-delivery', due: 0, scheduled: 0, held: 0, oldestDueMs: null };
const bad = (findings: readonly Finding[]) =>
  findings.filter(({ status }) => status !== 'ok').map(({ check, status }) => `${check}: ${status}`);

describe('judgements', () => {
  test('a good installation has nothing to say', () => {
    expect(bad(judgeDatabase(GOOD, 3))).toEqual([]);
    expect(bad(judgeRedis({ version: '7.0.15', maxmemoryPolicy: 'noeviction', appendOnly: true }))).toEqual([]);
    expect(bad([...judgeMedia([NODE]), judgeSignaling(1)])).toEqual([]);
    expect(bad([judgeSchema([]), judgeMasterKeys(['k1'], ['k2', 'k1']), judgeQueue(IDLE, null)])).toEqual([]);
  });

  test.each<[string, Finding[]]>([
    ['postgres: failure', judgeDatabase({ ...GOOD, versionNumber: 130_012 }, 0)],
    ['durability: failure', judgeDatabase({ ...GOOD, durable: false }, 0)],
    ['connections: warning', judgeDatabase({ ...GOOD, connections: 81 }, 0)],
    ['clock: warning', judgeDatabase(GOOD, -2001)],
    ['signing key: warning', judgeDatabase({ ...GOOD, activeSigningKeys: 0 }, 0)],
    ['schema: failure', [judgeSchema(['20270101000000_more'])]],
    ['encryption: failure', [judgeMasterKeys(['k1', 'k2'], ['k2'])]],
    ['encryption: warning', [judgeMasterKeys(['k1'], null)]],
    ['redis: failure', judgeRedis({ version: '6.0.9', maxmemoryPolicy: 'noeviction', appendOnly: true })],
    ['redis memory: failure', judgeRedis({ version: '7.2.0', maxmemoryPolicy: 'allkeys-lru', appendOnly: true })],
    ['redis persistence: warning', judgeRedis({ version: '7.2.0', maxmemoryPolicy: null, appendOnly: false })],
    ['media: warning', judgeMedia([])],
    ['media m1: failure', judgeMedia([{ ...NODE, state: 'down' }])],
    ['media m1: warning', judgeMedia([{ ...NODE, state: null }])],
    ['signaling: warning', [judgeSignaling(0)]],
    ['queue webhook-delivery: warning', [judgeQueue({ ...IDLE, due: 5, oldestDueMs: 60_001 }, null)]],
    [
      'queue webhook-delivery: failure',
      [judgeQueue(IDLE, [{ queue: 'webhook-delivery', waiting: 0, delayed: 0, active: 0, workers: 0 }])],
    ],
  ])('%s', (expected, findings) => {
    expect(bad(findings)).toEqual([expected]);
    expect(findings.filter(({ status }) => status !== 'ok').every(({ advice }) => advice !== undefined)).toBe(true);
  });
});

describe('rtc doctor', () => {
  test('looks at the real servers, and fails when one check does', async () => {
    const [target, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
    const env = { DATABASE_URL: target.url, REDIS_URL: redis.url, ENCRYPTION_KEYS: TEST_ENCRYPTION_KEYS };
    const { code, findings } = await doctor(env);
    // No worker runs here, and the shared PostgreSQL of the tests does not wait for the disk.
    expect(code).toBe(1);
    expect(statusOf(findings, 'schema')).toBe('ok');
    expect(statusOf(findings, 'clock')).toBe('ok');
    expect(statusOf(findings, 'redis')).toBe('ok');
    expect(statusOf(findings, 'redis persistence')).toBe('ok');
    expect(statusOf(findings, 'queue webhook-delivery')).toBe('failure');

    await redis.stop();
    const without = await doctor(env);
    expect(without.code).toBe(1);
    expect(without.findings).toContainEqual(expect.objectContaining({ check: 'redis', status: 'failure' }));
  });

  test('a database that is away, or has no schema, is one finding with advice and no secret', async () => {
    const gone = await doctor({ DATABASE_URL: 'postgresql://callplane:hidden-word@127.0.0.1:1/callplane' });
    expect(gone.code).toBe(1);
    expect(gone.findings[0]).toMatchObject({ check: 'postgres', status: 'failure' });
    expect(JSON.stringify(gone)).not.toContain('hidden-word');

    const target = await createTestDatabase();
    const database = new Database({ url: target.url, poolMax: 1 });
    await database.prisma.$executeRawUnsafe('CREATE DATABASE doctor_empty');
    await database.close();
    const url = new URL(target.url);
    url.pathname = '/doctor_empty';
    expect((await doctor({ DATABASE_URL: url.href })).findings[0]).toMatchObject({
      check: 'schema',
      status: 'failure',
      advice: 'Run "rtc db migrate".',
    });
  });
});

async function doctor(environment: Record<string, string>): Promise<{ code: number; findings: Finding[] }> {
  let stdout = '';
  const write = (text: string) => void (stdout += text);
  const failure = await run({ environment, clock: systemClock, write }, ['doctor', '--json']);
  return { code: failure?.exitCode ?? 0, findings: JSON.parse(stdout).data };
}

function statusOf(findings: readonly Finding[], check: string): string | undefined {
  return findings.find((finding) => finding.check === check)?.status;
}
