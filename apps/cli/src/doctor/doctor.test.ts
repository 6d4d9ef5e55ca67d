import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  Database,
  INVARIANTS,
  readBacklogs,
  readDatabaseFacts,
  writeEvents,
  type Backlog,
  type DatabaseFacts,
  type InvariantResult,
  type MediaNodeRow,
  type OldestSnapshot,
  type RecordingFacts,
  type Replication,
  type TableHealth,
} from '@callplane/db';
import { isOutdated } from '@callplane/media';
import type { RedisExamination, SentinelFacts } from '@callplane/queue';
import { systemClock } from '@callplane/runtime';
import {
  execute,
  breakRedis,
  createTestDatabase,
  createTestTenant,
  eventually,
  spawnApp,
  startTestRedis,
  stopAtEnd,
  temporaryDirectory,
  TEST_ENCRYPTION_KEYS,
  insertTestEndpoint,
} from '@callplane/testing';
import { FolderStore, type ObjectStore } from '@callplane/store';
import { describe, expect, test } from '@jest/globals';
import { run } from '../program.js';
import type { Finding } from './finding.js';
import {
  checkDatabase,
  checkInvariant,
  checkMasterKeys,
  checkReplication,
  checkSchema,
  checkSnapshots,
  checkTables,
} from './postgres.js';
import { checkRecordings } from './recordings.js';
import { checkListeners, checkRedis, checkRedisTrouble, checkSentinels } from './redis.js';
import { checkEndpoints, checkMedia, checkQueue, checkRelays, checkSignaling, checkWebhookNetworks } from './work.js';

const GOOD: DatabaseFacts = {
  versionNumber: 180_004,
  version: '18.4',
  encoding: 'UTF8',
  now: new Date(),
  durable: true,
  connections: 10,
  connectionsMax: 100,
  masterKeyIds: ['k1'],
  activeSigningKeys: 1,
  signalingInstances: 2,
  projects: 1,
  running: [],
};
const REDIS: RedisExamination = {
  version: '7.2.0',
  maxmemoryPolicy: 'noeviction',
  appendOnly: true,
  isPersisting: true,
  role: 'master',
  replicas: 1,
  usedBytes: 50,
  maxBytes: 100,
  systemBytes: 1000,
  trouble: null,
  listeners: 2,
};
const REPLICATED: Replication = {
  synchronousNames: 'ANY 1 (s1, s2)',
  waitingCommits: 0,
  standbys: [{ name: 's1', state: 'streaming', sync: 'quorum', lagBytes: 0 }],
};
const SENTINELS: SentinelFacts = {
  named: 3,
  answering: 3,
  failures: [],
  known: 3,
  masters: ['10.0.0.1:6379'],
  quorumProblem: null,
};
const NODE: MediaNodeRow = {
  id: 'm1',
  state: 'up',
  version: '1.4.1',
  draining: false,
  rooms: 1,
  sessions: 2,
  checkedAt: new Date(),
  capacity: null,
  region: null,
  url: null,
  agent: null,
  heartbeatAt: null,
  unreached: null,
};
/** With an agent that probes other servers. */
const PROBED = { ...NODE, url: 'ws://a/', agent: 'running' as const, unreached: ['m2'] };
const FAILING = {
  id: 'whep_1',
  environmentId: 'env_1',
  url: 'https://a.example/hooks',
  failingSince: new Date('2026-11-20T10:00:00Z'),
};
const IDLE: Backlog = {
  queue: 'webhook-delivery',
  due: 0,
  scheduled: 0,
  held: 0,
  oldestDueMs: null,
  oldestWorkingDueMs: null,
};
const WORKER = { app: 'webhook-worker', instance: '1@here', silentMs: 5000, aheadSeconds: null };
const HOLDS: InvariantResult = {
  invariant: { name: 'some', sentence: 'It holds.', subject: 'rooms' },
  checked: 5,
  broken: 0,
  ids: [],
};
const table = (liveRows: number, deadRows: number): TableHealth => ({
  table: 'webhook_deliveries',
  liveRows,
  deadRows,
  bytes: 1,
  vacuumedAt: null,
});
const snapshot = (more: Partial<OldestSnapshot>): OldestSnapshot => ({
  holder: 'session',
  transactions: 10,
  seconds: 5,
  name: 'pid 1 app psql',
  ...more,
});
const SLOT = snapshot({ holder: 'slot', seconds: null, name: 'standby_1' });
const bad = (findings: readonly Finding[]) =>
  findings.filter(({ status }) => status !== 'ok').map(({ check, status }) => `${check}: ${status}`);

describe('the findings of the doctor', () => {
  test('are all ok for a healthy installation', () => {
    expect(bad(checkDatabase(GOOD, 3))).toEqual([]);
    const alone = { ...REPLICATED, synchronousNames: '', standbys: [] };
    expect(bad([checkReplication(REPLICATED), checkReplication(alone)])).toEqual([]);
    expect(bad(checkRedis(REDIS, [IDLE]))).toEqual([]);
    expect(bad(checkListeners(1, [WORKER, { ...WORKER, app: 'api' }]))).toEqual([]);
    expect(bad(checkSentinels(SENTINELS, 1))).toEqual([]);
    expect(bad([...checkMedia([NODE], isOutdated), checkSignaling(1)])).toEqual([]);
    expect(bad([...checkRelays([{ address: 'a:5766', state: 'up' }]), ...checkEndpoints(0, [])])).toEqual([]);
    expect(bad(checkWebhookNetworks(['backend=10.0.5.0/24', '127.0.0.0/8'], 1))).toEqual([]);
    expect(bad([checkQueue({ ...IDLE, queue: 'recording-process' }, [])])).toEqual([]);
    expect(bad([checkTables([table(5_000_000, 250_000), table(100, 400)])])).toEqual([]);
    expect(bad([checkSnapshots([]), checkSnapshots([snapshot({}), SLOT])])).toEqual([]);
    expect(bad([checkSchema([]), checkMasterKeys(['k1'], ['k2', 'k1']), checkQueue(IDLE, [WORKER])])).toEqual([]);
  });

  test.each<[string, Finding[]]>([
    ['postgres: failure', checkDatabase({ ...GOOD, versionNumber: 130_012 }, 0)],
    ['text: failure', checkDatabase({ ...GOOD, encoding: 'SQL_ASCII' }, 0)],
    ['durability: failure', checkDatabase({ ...GOOD, durable: false }, 0)],
    ['connections: warning', checkDatabase({ ...GOOD, connections: 81 }, 0)],
    ['clock: warning', checkDatabase(GOOD, -2001)],
    ['clock webhook-worker 1@here: warning', checkDatabase({ ...GOOD, running: [{ ...WORKER, aheadSeconds: -3 }] }, 0)],
    ['signing key: warning', checkDatabase({ ...GOOD, activeSigningKeys: 0 }, 0)],
    ['replication: warning', [checkReplication({ ...REPLICATED, synchronousNames: '' })]],
    ['replication: warning', [checkReplication({ ...REPLICATED, waitingCommits: 1 })]],
    [
      'replication: warning',
      [checkReplication({ ...REPLICATED, standbys: [{ name: null, state: null, sync: null, lagBytes: null }] })],
    ],
    [
      'replication: warning',
      [checkReplication({ ...REPLICATED, standbys: [{ ...REPLICATED.standbys[0]!, lagBytes: 2 ** 29 }] })],
    ],
    ['replication: failure', [checkReplication({ ...REPLICATED, standbys: [] })]],
    [
      'replication: failure',
      [checkReplication({ ...REPLICATED, standbys: [{ ...REPLICATED.standbys[0]!, state: 'catchup' }] })],
    ],
    ['tables: warning', [checkTables([table(100_000, 60_000)])]],
    ['snapshots: warning', [checkSnapshots([snapshot({ seconds: 3601 })])]],
    ['snapshots: warning', [checkSnapshots([snapshot({}), { ...SLOT, transactions: 5_000_001 }])]],
    ['schema: failure', [checkSchema(['20270101000000_more'])]],
    ['encryption: failure', [checkMasterKeys(['k1', 'k2'], ['k2'])]],
    ['encryption: warning', [checkMasterKeys(['k1'], null)]],
    ['redis: failure', checkRedis({ ...REDIS, version: '6.0.9' }, [])],
    ['redis memory: failure', checkRedis({ ...REDIS, maxmemoryPolicy: 'allkeys-lru' }, [])],
    ['redis persistence: warning', checkRedis({ ...REDIS, maxmemoryPolicy: null, appendOnly: false }, [])],
    ['redis writes: failure', checkRedis({ ...REDIS, role: 'slave', trouble: 'read-only' }, null)],
    ['redis memory: warning', checkRedis({ ...REDIS, usedBytes: 81, maxBytes: 100 }, [])],
    ['redis memory: warning', checkRedis({ ...REDIS, usedBytes: 801, maxBytes: 0 }, [])],
    ['redis memory: warning', checkRedis({ ...REDIS, maxBytes: 751 }, [])],
    ['redis persistence: failure', checkRedis({ ...REDIS, isPersisting: false }, [])],
    ['redis writes: failure', checkRedis({ ...REDIS, trouble: 'refused' }, null)],
    ['redis writes: failure', checkRedis({ ...REDIS, trouble: 'cluster' }, null)],
    [
      'redis subscriptions: failure',
      checkListeners(
        1,
        ['api', 'signaling'].map((app) => ({ ...WORKER, app })),
      ),
    ],
    ['redis: failure', [checkRedisTrouble('untrusted', null, 'self-signed certificate')]],
    ['redis sentinels: failure', checkSentinels({ ...SENTINELS, answering: 0, masters: [] }, null)],
    ['redis sentinels: failure', checkSentinels({ ...SENTINELS, quorumProblem: 'NOQUORUM' }, 1)],
    ['redis sentinels: warning', checkSentinels({ ...SENTINELS, answering: 2, failures: ['s3: refused'] }, 1)],
    ['redis sentinels: warning', checkSentinels({ ...SENTINELS, masters: ['a:1', 'b:1'] }, 1)],
    ['redis sentinels: warning', checkSentinels({ ...SENTINELS, known: 2 }, 1)],
    ['redis replicas: warning', checkSentinels(SENTINELS, 0)],
    ['media: warning', checkMedia([], isOutdated)],
    ['media m1: failure', checkMedia([{ ...NODE, state: 'down' }], isOutdated)],
    ['media m1: warning', checkMedia([{ ...NODE, state: null }], isOutdated)],
    ['media m1: warning', checkMedia([{ ...NODE, state: null, url: 'ws://a/' }], isOutdated)],
    ['media m1: warning', checkMedia([{ ...NODE, url: 'ws://a/', agent: 'silent' }], isOutdated)],
    ['media m1: warning', checkMedia([PROBED, { ...PROBED, id: 'm2', unreached: [] }], isOutdated)],
    ['media m1: warning', checkMedia([{ ...NODE, version: '1.1.2' }], isOutdated)],
    ['media m1: failure', checkMedia([{ ...NODE, state: 'down', version: '1.1.2' }], isOutdated)],
    ['relays: warning', checkRelays([])],
    ['relays a:5766: failure', checkRelays([{ address: 'a:5766', state: 'down' }])],
    ['relays a:5766: failure', checkRelays([{ address: 'a:5766', state: 'unreachable' }])],
    ['signaling: warning', [checkSignaling(0)]],
    ['webhook endpoint whep_1: warning', checkEndpoints(1, [FAILING])],
    ['webhook networks: warning', checkWebhookNetworks(['backend=10.0.5.0/24'], 2)],
    ['webhook networks lan: warning', checkWebhookNetworks(['backend=10.0.5.0/24', 'lan=10.0.0.0/8'], 1)],
    ['webhook networks aws: warning', checkWebhookNetworks(['aws=169.254.169.254/32'], 1)],
    ['webhook networks: failure', checkWebhookNetworks(['backend=10.0.5.1/24'], 1)],
    [
      'queue webhook-delivery: warning',
      [checkQueue({ ...IDLE, due: 5, oldestDueMs: 60_001, oldestWorkingDueMs: 60_001 }, [WORKER])],
    ],
    ['queue webhook-delivery: failure', [checkQueue(IDLE, [])]],
    ['queue webhook-delivery: failure', [checkQueue(IDLE, [{ ...WORKER, silentMs: 20_001 }])]],
    ['queue webhook-delivery: failure', [checkQueue(IDLE, [{ ...WORKER, app: 'api' }])]],
    ['queue recording-process: failure', [checkQueue({ ...IDLE, queue: 'recording-process', due: 1 }, [WORKER])]],
    ['redis: failure', [checkRedisTrouble('frozen', null)]],
    ['invariant some: failure', [checkInvariant({ ...HOLDS, broken: 12, ids: ['room_a'] })]],
    ['invariant some: warning', [checkInvariant({ ...HOLDS, checked: null })]],
  ])('include "%s" with advice', (expected, findings) => {
    expect(bad(findings)).toEqual([expected]);
    expect(findings.filter(({ status }) => status !== 'ok').every(({ advice }) => advice !== undefined)).toBe(true);
  });
});

describe('the findings about recordings', () => {
  const folder = temporaryDirectory('doctor');
  const store = new FolderStore(join(folder, 'store'));
  const facts = { hasRecorder: true, recording: 1, silent: 0 };

  test('are ok with a store, a recorder and an agent, and for a deployment without recordings', async () => {
    expect(await checkRecordings(store, facts, true)).toMatchObject([
      { check: 'recordings store', status: 'ok', detail: 'writes, reads and deletes' },
      { check: 'recordings recorder', status: 'ok' },
      { check: 'recordings agents', status: 'ok', detail: '1 media server records' },
    ]);
    expect(readdirSync(join(folder, 'store/doctor'))).toEqual([]);
    expect(bad(await checkRecordings(null, { ...facts, hasRecorder: false }, false))).toEqual([]);
  });

  test.each<[string, ObjectStore | null, Partial<RecordingFacts>]>([
    ['recordings store: failure', new FolderStore('/dev/null/store'), {}],
    ['recordings store: failure', null, {}],
    ['recordings recorder: failure', store, { hasRecorder: false }],
    ['recordings agents: warning', store, { recording: 0 }],
    ['recordings agents: warning', store, { silent: 1 }],
  ])('include "%s" with advice', async (expected, used, more) => {
    const findings = await checkRecordings(used, { ...facts, ...more }, true);
    expect(bad(findings)).toEqual([expected]);
    expect(findings.find(({ status }) => status !== 'ok')?.advice).toMatch(/RECORDINGS_|ffmpeg|rtc media agent/);
  });
});

test('the doctor names an old snapshot, and says how to end it', () => {
  const { detail, advice } = checkSnapshots([snapshot({ seconds: 3601 })]);
  expect([detail, advice]).toEqual([
    expect.stringContaining('pid 1 app psql'),
    expect.stringContaining('pg_terminate_backend'),
  ]);
});

test('the doctor gives each failing endpoint a line with its URL, and counts the others', () => {
  expect(checkEndpoints(3, [FAILING])).toMatchObject([
    {
      check: 'webhook endpoint whep_1',
      detail: '"https://a.example/hooks" fails since 2026-11-20T10:00:00.000Z',
      advice: expect.stringContaining('rtc deliveries list --endpoint whep_1'),
    },
    { check: 'webhook endpoints', detail: '2 more fail' },
  ]);
});

test('the doctor asks for no further worker while only deliveries to failing endpoints are late', () => {
  const finding = checkQueue({ ...IDLE, due: 5, oldestDueMs: 90_000, oldestWorkingDueMs: null }, [WORKER]);
  expect(finding).toEqual({
    check: 'queue webhook-delivery',
    status: 'ok',
    detail: '5 due, the oldest for 90.0 s; only deliveries to endpoints whose attempts fail wait for long',
  });
});

describe('rtc doctor', () => {
  test('names the process whose clock is wrong, until it is right again', async () => {
    const { url } = await createTestDatabase();
    const database = new Database({ url, poolMax: 1, applicationName: 'callplane webhook-worker 4711@node-2' });
    stopAtEnd(() => database.close());
    const clocks = async (aheadMs: number) => {
      await database.compareClock({ now: () => new Date(Date.now() + aheadMs) });
      const { running } = await readDatabaseFacts(database.sql);
      return running.map(({ app, instance, aheadSeconds }) => [app, instance, aheadSeconds]);
    };
    const process = ['webhook-worker', '4711@node-2'];
    expect(await clocks(0)).toEqual([[...process, null]]);
    expect(await clocks(3_600_000)).toEqual([[...process, expect.closeTo(3600, -1)]]);
    expect(await clocks(-3_600_000)).toEqual([[...process, expect.closeTo(-3600, -1)]]);
    expect(await clocks(0)).toEqual([[...process, null]]);
  });

  test('checks the real servers, and fails if one check fails', async () => {
    const [target, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
    const env = { DATABASE_URL: target.url, REDIS_URL: redis.url, ENCRYPTION_KEYS: TEST_ENCRYPTION_KEYS };
    const { code, findings } = await doctor(env);
    // The exit code is 1: no worker runs here, and the shared test PostgreSQL has durability turned off.
    expect(code).toBe(1);
    expect(statusOf(findings, 'schema')).toBe('ok');
    expect(statusOf(findings, 'clock')).toBe('ok');
    expect(statusOf(findings, 'redis')).toBe('ok');
    expect(statusOf(findings, 'relays')).toBe('warning');
    expect(findingOf(findings, 'recordings')?.detail).toBe('are off: no store is set');
    expect(statusOf(findings, 'redis persistence')).toBe('ok');
    expect(statusOf(findings, 'queue webhook-delivery')).toBe('failure');
    expect(invariantsOf(findings)).toEqual([]);
    const deep = await doctor(env, ['--deep', '--rows', '10']);
    expect(invariantsOf(deep.findings)).toEqual(INVARIANTS.map(({ name }) => `invariant ${name}: ok`));

    for (const fault of ['full', 'read-only', 'frozen'] as const) {
      const repair = await breakRedis(redis, fault);
      const broken = await (async () => {
        try {
          return await doctor(env);
        } finally {
          await repair();
        }
      })();
      const finding = broken.findings.find(({ detail }) => detail.startsWith(`is ${fault}`));
      expect(finding).toMatchObject({ status: 'failure', advice: expect.stringContaining('Redis') });
    }

    await redis.stop();
    const without = await doctor(env);
    expect(without.code).toBe(1);
    expect(without.findings).toContainEqual(expect.objectContaining({ check: 'redis', status: 'failure' }));
  });

  test('measures with a frozen Redis which work is late, and whether workers work', async () => {
    const [target, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
    const env = { DATABASE_URL: target.url, REDIS_URL: redis.url, ENCRYPTION_KEYS: TEST_ENCRYPTION_KEYS };
    const database = new Database({ url: target.url, poolMax: 1 });
    const tenant = await createTestTenant(database);
    const repair = await breakRedis(redis, 'frozen');
    try {
      const endpointId = await insertTestEndpoint(database, tenant, { url: 'https://192.0.2.1/' });
      await database.transaction(async (tx) => {
        const event = { type: 'webhook.test' as const, tenant, roomId: null, participantId: null, data: {} };
        await writeEvents(tx, [{ ...event, createdAt: new Date() }], { only: endpointId });
        await tx.$executeRaw`UPDATE webhook_deliveries SET due_at = now() - interval '70 seconds'`;
        await tx.$executeRaw`
          UPDATE webhook_endpoints SET failing_since = now() - interval '16 minutes', last_failed_at = now()`;
      });
      const lone = await doctor(env);
      expect(findingOf(lone.findings, `webhook endpoint ${endpointId}`)).toMatchObject({
        status: 'warning',
        detail: expect.stringContaining('"http'),
      });
      const count = (status: string) => lone.findings.filter((finding) => finding.status === status).length;
      expect((await rtcDoctor(env, [])).stdout).toContain(`\n${count('ok')} ok, ${count('warning')} warnings\n`);
      expect(findingOf(lone.findings, 'queue webhook-delivery')).toMatchObject({
        status: 'failure',
        detail: expect.stringMatching(/^1 due, the oldest for \d+\.\d s; no webhook-worker is connected$/),
      });
      expect(findingOf(lone.findings, 'redis')).toMatchObject({
        detail: 'is frozen',
        advice: expect.stringMatching(/Measured now: late are webhook-delivery by [7-9]\d\.\d s \(1 due\)/),
      });

      // A worker finds the delivery by its scan. Redis is still frozen.
      const worker = await spawnApp({ name: 'webhook-worker', env });
      await eventually(async () => (await readBacklogs(database.sql)).every(({ due }) => due === 0));
      const found = findingOf((await doctor(env)).findings, 'queue webhook-delivery');
      expect(found).toMatchObject({
        status: 'ok',
        detail: expect.stringMatching(/1 worker, which read PostgreSQL \d/),
      });
      await worker.stop();
    } finally {
      await repair();
      await database.close();
    }
  });

  test('reports an unreachable database or a missing schema as one finding, with advice and without secrets', async () => {
    const gone = await doctor({ DATABASE_URL: 'postgresql://callplane:hidden-word@127.0.0.1:1/callplane' });
    expect(gone.code).toBe(1);
    expect(gone.findings[0]).toMatchObject({ check: 'postgres', status: 'failure' });
    expect(JSON.stringify(gone)).not.toContain('hidden-word');

    const target = await createTestDatabase();
    const database = new Database({ url: target.url, poolMax: 1 });
    await execute(database, 'CREATE DATABASE doctor_empty');
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

async function doctor(
  environment: Record<string, string>,
  options: string[] = [],
): Promise<{ code: number; findings: Finding[] }> {
  const { code, stdout } = await rtcDoctor(environment, ['--json', ...options]);
  return { code, findings: JSON.parse(stdout).data };
}

async function rtcDoctor(environment: Record<string, string>, options: string[]) {
  let stdout = '';
  const write = (text: string) => void (stdout += text);
  const failure = await run({ environment, clock: systemClock, write }, ['doctor', ...options]);
  return { code: failure?.exitCode ?? 0, stdout };
}

function invariantsOf(findings: readonly Finding[]): string[] {
  return findings
    .filter(({ check }) => check.startsWith('invariant'))
    .map(({ check, status }) => `${check}: ${status}`);
}

function findingOf(findings: readonly Finding[], check: string): Finding | undefined {
  return findings.find((finding) => finding.check === check);
}

function statusOf(findings: readonly Finding[], check: string): string | undefined {
  return findingOf(findings, check)?.status;
}
