import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { isLoginCode, parseApiKey, SCOPES } from '@callplane/core';
import { Database, findApiKeysByHash } from '@callplane/db';
import { NoticeListener } from '@callplane/queue';
import {
  execute,
  appMain,
  createTestDatabase,
  eventually,
  gatewayUrlOf,
  startTestPostgres,
  startTestRedis,
  TEST_ENCRYPTION_KEYS,
  type TestDatabase,
} from '@callplane/testing';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { commandsWith, parse, type Outcome } from './cli.testkit.js';

const MAIN = appMain('cli');
/** How long a process may live after its last output. A leaked timer would keep it alive for 10 s. */
const PROMPT_MS = 8000;

let target: TestDatabase;
let database: Database;
/** A project and an environment that all tests share and may add to. */
let projectId: string;
let environmentId: string;

beforeAll(async () => {
  target = await createTestDatabase();
  database = new Database({ url: target.url, poolMax: 2 });
  projectId = (await json('projects', 'create', '--name', 'Shared')).id;
  environmentId = (await json('environments', 'create', '--project', projectId, '--name', 'shared')).id;
});
afterAll(() => database.close());

const { rtc, rtcWith, json, expectFailure } = commandsWith(() => environmentWith({}));

describe('rtc projects and rtc environments', () => {
  test('create with a trimmed name, and list', async () => {
    const project = await json('projects', 'create', '--name', '  My app ');
    expect(project).toEqual({ id: expect.stringMatching(/^proj_/), name: 'My app', createdAt: expect.any(String) });
    const environment = await json('environments', 'create', '--project', project.id, '--name', 'production');
    expect(environment).toEqual({
      id: expect.stringMatching(/^env_/),
      projectId: project.id,
      name: 'production',
      createdAt: expect.any(String),
    });
    expect((await json('projects', 'list')).data).toContainEqual(project);
    expect(await json('environments', 'list', '--project', project.id)).toEqual({ data: [environment] });
    const usage = await json('environments', 'usage', environment.id, '--days', '2');
    expect(usage.data).toMatchObject([{ rooms: 0 }, { participantSeconds: 0, relayShare: null, deliveries: 0 }]);
  });

  test('create a project with an environment and its keys at once', async () => {
    const made = await json('projects', 'create', '--name', 'At once', '--environment', 'production');
    expect(made.environment).toMatchObject({ projectId: made.id, name: 'production' });
    expect(made.keys).toMatchObject([
      { type: 'secret', environmentId: made.environment.id, key: expect.stringMatching(/^rtc_sk_/) },
      { type: 'publishable', environmentId: made.environment.id, key: expect.stringMatching(/^rtc_pk_/) },
    ]);
    expect((await json('keys', 'list', '--env', made.environment.id)).data).toHaveLength(2);
    const { stdout } = await rtc('projects', 'create', '--name', 'Text', '--environment', 'production');
    expect(stdout).toMatch(
      /^Project proj_.*\nEnvironment env_.*\nsecret key key_.*:\nrtc_sk_\w+\npublishable key key_/,
    );
  });

  test('print no character of a name that steers a terminal, and JSON with the same name', async () => {
    const name = `steer\n\u202eevil\u2028\u2066`;
    const steering = /(?!\n)\p{Cc}|[\u2028-\u202e\u2066-\u2069]/u;
    const created = await rtc('projects', 'create', '--name', name, '--json');
    expect(parse(created).name).toBe(name);
    const listed = await rtc('projects', 'list');
    expect(listed.stdout).toContain('"steer\\n\\u202eevil\\u2028\\u2066"');
    const steered = 'steer\u0007\u007f\u009b2J';
    await expectFailure(2, ['projects', 'create', '--name', steered], 'must not contain the control character U+0007');
    const unknown = await rtc('keys', 'revoke', steered);
    expect(unknown.stderr).toContain('"steer\\u0007\\u007f\\u009b2J"');
    const argument = await rtc(steered);
    for (const text of [created.stdout, listed.stdout, unknown.stderr, argument.stderr]) {
      expect(text).not.toMatch(steering);
    }
  });

  test('exit with 2 for an unknown project and for a duplicate name', async () => {
    await expectFailure(2, ['environments', 'create', '--project', 'proj_x', '--name', 'a'], '"rtc projects list"');
    await expectFailure(2, ['environments', 'list', '--project', 'proj_x'], '"rtc projects list"');
    await expectFailure(2, ['environments', 'usage', 'env_x'], '"rtc environments list');
    await expectFailure(2, ['environments', 'usage', environmentId, '--days', '93'], 'from 1 to 92');
    await expectFailure(
      2,
      ['environments', 'create', '--project', projectId, '--name', 'shared'],
      'Choose another --name',
    );
  });
});

describe('rtc console', () => {
  test('makes a link with a single-use code behind #, and stores only its hash', async () => {
    const options = ['--env', environmentId, '--read-only', '--ttl', '30m', '--url', 'https://calls.example.com/v1'];
    const made = await json('console', 'login', ...options);
    const [base, code] = made.url.split('#login=');
    expect(base).toBe('https://calls.example.com/console/');
    expect(isLoginCode(code)).toBe(true);
    expect(made).toMatchObject({ environmentId, readOnly: true, lifetimeSeconds: 1800 });
    expect(made.scopes).toEqual(['rooms:read', 'participants:read', 'recordings:read', 'webhooks:read']);
    const row = await database.prisma.consoleSession.findUniqueOrThrow({ where: { id: made.id } });
    expect(Buffer.from(row.codeHash!)).toEqual(createHash('sha256').update(code).digest());
    const sessions = ['console', 'sessions'];
    expect((await json(...sessions, 'list', '--env', environmentId)).data).toMatchObject([
      { id: made.id, state: 'link', readOnly: true, apiKeyId: null },
    ]);
    expect(await json(...sessions, 'revoke', made.id)).toEqual({ ended: [made.id], noticeSent: true });
    expect((await json(...sessions, 'list', '--env', environmentId)).data).toEqual([]);
  });

  test('ends all sessions of an environment, and says how to correct invalid input', async () => {
    const login = ['console', 'login', '--env', environmentId];
    const made = [await json(...login), await json(...login)];
    const { ended } = await json('console', 'sessions', 'revoke', '--all', '--env', environmentId);
    expect(ended.sort()).toEqual(made.map(({ id }) => id).sort());
    await expectFailure(2, [...login, '--ttl', '2d'], '1m to 24h');
    await expectFailure(2, [...login, '--url', 'ftp://x'], '--url');
    await expectFailure(2, [...login, '--read-only', '--scopes', 'rooms:create'], 'Omit --read-only');
    await expectFailure(2, ['console', 'login', '--env', 'env_x'], '"rtc environments list');
    await expectFailure(2, ['console', 'sessions', 'revoke'], 'or --all');
    await expectFailure(2, ['console', 'sessions', 'revoke', 'cses_x'], '"rtc console sessions list"');
  });
});

describe('rtc keys', () => {
  test('creates a secret key with all scopes by default, and stores only its hash', async () => {
    const created = await json('keys', 'create', '--env', environmentId, '--type', 'secret');
    expect(created).toEqual({
      id: expect.stringMatching(/^key_/),
      key: expect.stringMatching(/^rtc_sk_/),
      environmentId,
      type: 'secret',
      name: null,
      keyHint: created.key.slice(-4),
      scopes: [...SCOPES],
      createdAt: expect.any(String),
      expiresAt: null,
    });
    expect(parseApiKey(created.key)).toBe('secret');
    expect(await identityOf(created.key)).toMatchObject({ keyId: created.id, projectId, environmentId });
    expect((await rtc('keys', 'list', '--env', environmentId)).stdout).not.toContain(created.key);
  });

  test('accepts scopes, a name and an expiry', async () => {
    const restricted = ['--scopes', 'tokens:create,rooms:read', '--name', 'CI', '--expires-in', '90d'];
    const key = await json('keys', 'create', '--env', environmentId, '--type', 'secret', ...restricted);
    expect(key).toMatchObject({ name: 'CI', scopes: ['rooms:read', 'tokens:create'] });
    expect(Date.parse(key.expiresAt) - Date.parse(key.createdAt)).toBe(90 * 86_400_000);
  });

  test('creates a publishable key without scopes, and rejects --scopes for it', async () => {
    const create = ['keys', 'create', '--env', environmentId, '--type', 'publishable'];
    expect(await json(...create)).toMatchObject({ key: expect.stringMatching(/^rtc_pk_/), scopes: [] });
    await expectFailure(2, [...create, '--scopes', 'rooms:read'], 'Omit --scopes');
  });

  test('revokes a key, and sends its hash to the running apps', async () => {
    const redis = await startTestRedis();
    const received: string[] = [];
    const listener = new NoticeListener(redis.url, { onLost: () => undefined, onReady: () => undefined });
    listener.on('apiKeyRevoked', (hash) => received.push(hash));
    await eventually(() => listener.isListening);

    const created = await json('keys', 'create', '--env', environmentId, '--type', 'secret');
    const revoked = parse(await rtcWith({ REDIS_URL: redis.url }, 'keys', 'revoke', created.id, '--json'));
    expect(revoked).toEqual({ id: created.id, revokedAt: expect.any(String), noticeSent: true });
    await eventually(() => received.length > 0);
    expect(received).toEqual([createHash('sha256').update(created.key).digest('hex')]);
    expect((await identityOf(created.key))?.revokedAt).toEqual(new Date(revoked.revokedAt));

    // Repeated without Redis: the key keeps its first revocation time.
    await listener.close();
    await redis.stop();
    const again = parse(await rtcWith({ REDIS_URL: redis.url }, 'keys', 'revoke', created.id, '--json'));
    expect(again).toEqual({ ...revoked, noticeSent: false });
    const listed = (await json('keys', 'list', '--env', environmentId)).data.find(
      ({ id }: { id: string }) => id === created.id,
    );
    expect(listed).toMatchObject({ revokedAt: revoked.revokedAt, keyHint: created.key.slice(-4) });
    expect(listed).not.toHaveProperty('key');
    expect(listed).not.toHaveProperty('keyHash');
  });

  test('exits with 2 on invalid input, and says how to correct it', async () => {
    const create = ['keys', 'create', '--env', environmentId];
    await expectFailure(2, [...create, '--type', 'secret', '--scopes', 'rooms:*'], 'rooms:create');
    await expectFailure(2, [...create, '--type', 'secret', '--expires-in', '90'], '30m, 12h or 90d');
    await expectFailure(2, [...create, '--type', 'admin'], 'secret, publishable');
    await expectFailure(2, create, '--type <type>');
    await expectFailure(2, ['keys', 'create', '--env', 'env_x', '--type', 'secret'], '"rtc environments list');
    await expectFailure(2, ['keys', 'list', '--env', 'env_x'], '"rtc environments list');
    await expectFailure(2, ['keys', 'revoke', 'key_x'], '"rtc keys list"');
  });

  test('redacts a key that is given instead of its id', async () => {
    const { key } = await json('keys', 'create', '--env', environmentId, '--type', 'secret');
    const { stderr } = await rtc('keys', 'revoke', key);
    expect(stderr).toContain('rtc_[redacted]');
    expect(stderr).not.toContain(key);
  });
});

describe('rtc signing-keys', () => {
  test('rotate publishes a key that signs later, and refuses a second rotation meanwhile', async () => {
    const rotated = await json('signing-keys', 'rotate');
    expect(rotated).toEqual({ id: expect.any(String), activatesAt: expect.any(String) });
    const { data } = await json('signing-keys', 'list');
    expect(data.map(({ status }: { status: string }) => status).sort()).toEqual(['active', 'next']);
    const next = data.find(({ status }: { status: string }) => status === 'next');
    expect(next).toMatchObject({ id: rotated.id, activatesAt: rotated.activatesAt });
    expect(Date.parse(next.activatesAt) - Date.parse(next.createdAt)).toBe(300_000);

    const second = await rtc('signing-keys', 'rotate');
    expect(second).toMatchObject({ code: 1, stdout: '' });
    expect(second.stderr).toMatch(/^A rotation is in progress: key \S+ signs from \S+ on.*\n$/);
  });

  test('rotate --publish-seconds 0 activates the key at once', async () => {
    const fresh = await createTestDatabase();
    const env = { DATABASE_URL: fresh.url };
    const { id } = parse(await rtcWith(env, 'signing-keys', 'rotate', '--publish-seconds', '0', '--json'));
    const { data } = parse(await rtcWith(env, 'signing-keys', 'list', '--json'));
    expect(data.map((key: { id: string; status: string }) => [key.status, key.id === id]).sort()).toEqual([
      ['active', true],
      ['retired', false],
    ]);
  });

  test('rotate requires valid master keys and at most one day of publication', async () => {
    await expectFailure(2, ['signing-keys', 'rotate', '--publish-seconds', '86401'], '0 to 86400');
    await expectFailure(2, ['signing-keys', 'rotate'], 'Set ENCRYPTION_KEYS', { ENCRYPTION_KEYS: '' });
    await expectFailure(2, ['signing-keys', 'rotate'], 'ENCRYPTION_KEYS must be a list like', {
      ENCRYPTION_KEYS: 'k1:short',
    });
    expect(await rtcWith({ ENCRYPTION_KEYS: '' }, 'signing-keys', 'list')).toMatchObject({ code: 0 });
  });
});

describe('rtc db', () => {
  test('commands report missing tables, and migrate applies the migrations that status lists', async () => {
    const empty = { DATABASE_URL: await emptyDatabase() };
    expect(await rtcWith(empty, 'projects', 'list')).toMatchObject({
      code: 1,
      stderr: 'The database lacks tables of this version: run "rtc db migrate" first.\n',
    });
    const { pending } = parse(await rtcWith(empty, 'db', 'status', '--json'));
    expect(pending.length).toBeGreaterThan(0);
    expect(parse(await rtcWith(empty, 'db', 'migrate', '--json'))).toEqual({ applied: pending });
    expect(await rtcWith(empty, 'db', 'status')).toMatchObject({ code: 0, stdout: 'Up to date.\n' });
    expect(await rtcWith(empty, 'db', 'migrate')).toMatchObject({ code: 0, stdout: 'No pending migrations.\n' });
  });

  test('tables shows the busy tables and the oldest snapshots', async () => {
    const { tables, snapshots } = await json('db', 'tables');
    expect(tables).toContainEqual(expect.objectContaining({ table: 'webhook_deliveries', bytes: expect.any(Number) }));
    expect(snapshots).toContainEqual(expect.objectContaining({ holder: 'slot', seconds: null }));
    expect((await rtc('db', 'tables')).stdout).toMatch(/^webhook_deliveries +\d+ +\d+ +[\d.]+ MiB/m);
  });
});

describe('the command line', () => {
  test('exits with 2 for unknown commands, options and arguments', async () => {
    await expectFailure(2, [], '"rtc --help"');
    await expectFailure(2, ['keys'], '"rtc keys --help"');
    await expectFailure(2, ['room'], "unknown command 'room'");
    await expectFailure(2, ['keys', 'creat'], 'Did you mean create?');
    await expectFailure(2, ['projects', 'list', '--all'], "unknown option '--all'");
    await expectFailure(2, ['projects', 'list', 'more'], 'too many arguments');
    await expectFailure(2, ['projects', 'create'], "required option '--name <name>'");
    await expectFailure(2, ['projects', 'create', '--name', '   '], '1 to 120 characters');
  });

  test('reports every configuration problem in one line without secrets', async () => {
    const env = { DATABASE_URL: 'mysql://root:hunter2@db', REDIS_URL: 'hunter3' };
    const { code, stdout, stderr } = await rtcWith(env, 'projects', 'list');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^DATABASE_URL must be .*; REDIS_URL must be .*\n$/);
    expect(stderr).not.toContain('hunter');
    await expectFailure(2, ['projects', 'list'], 'DATABASE_URL is required', { DATABASE_URL: '' });
    const unescaped = { DATABASE_URL: 'postgresql://a b:x:y' };
    for (const command of [
      ['projects', 'list'],
      ['db', 'migrate'],
    ]) {
      await expectFailure(2, command, 'special characters escaped', unescaped);
    }
  });

  test.each<[string, (url: URL) => void, string]>([
    [
      'unreachable',
      (url) => (url.port = '1'),
      'PostgreSQL is unreachable or read-only. Check that it runs and that DATABASE_URL is right.\n',
    ],
    ['missing', (url) => (url.pathname = '/missing'), 'The database that DATABASE_URL names does not exist.\n'],
    ['closed', (url) => (url.password = 'hunter2'), 'PostgreSQL refuses the user or password in DATABASE_URL.\n'],
  ])('reports a database that is %s in one line with exit code 1', async (_, change, stderr) => {
    const url = new URL(target.url);
    change(url);
    for (const command of ['projects list', 'db migrate']) {
      const outcome = await rtcWith({ DATABASE_URL: url.href }, ...command.split(' '));
      expect(outcome).toEqual({ code: 1, stdout: '', stderr });
    }
  });
});

describe('the rtc process', () => {
  test('prints one JSON object and exits promptly with 0', async () => {
    expect(parse(await spawnRtc({}, 'projects', 'create', '--name', 'Spawned', '--json'))).toMatchObject({
      name: 'Spawned',
    });
    expect(parse(await spawnRtc({}, 'db', 'status', '--json'))).toEqual({ pending: [] });
  });

  test('prints one line and exits with 2 on invalid input and with 1 without a database', async () => {
    const wrong = await spawnRtc({}, 'projects', 'create');
    expect(wrong).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/^rtc projects create: .*\n$/) });
    const away = await spawnRtc({ DATABASE_URL: 'postgresql://a:b@127.0.0.1:1/c' }, 'db', 'migrate');
    expect(away).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^PostgreSQL is unreachable.*\n$/),
    });
  });

  test('grants the gateway its own role whenever db migrate runs', async () => {
    const gateway = { GATEWAY_DATABASE_URL: gatewayUrlOf(target.url) };
    for (let runs = 0; runs < 2; runs++) {
      const answer = parse(await rtcWith(gateway, 'db', 'migrate', '--json'));
      expect(answer).toEqual({ applied: [], gatewayRole: 'callplane_gateway' });
    }
  });

  test('gives up on a frozen database', async () => {
    const postgres = await startTestPostgres();
    const frozen = await postgres.createDatabase();
    postgres.freeze();
    const outcome = await spawnRtc({ DATABASE_URL: frozen.url }, 'projects', 'list');
    expect(outcome).toMatchObject({ code: 1, stderr: expect.stringMatching(/^PostgreSQL is unreachable.*\n$/) });
  });

  test('exits with 0 if the reader closes the pipe early', async () => {
    const child = spawn(process.execPath, [MAIN, '--help'], { env: environmentWith({}), stdio: 'pipe' });
    child.stdout.destroy();
    const [stderr, code] = await Promise.all([
      text(child.stderr),
      new Promise<number | null>((resolve) => child.once('close', resolve)),
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

/** Runs the built command line as a process, and fails if the process outlives its output by PROMPT_MS. */
async function spawnRtc(env: Record<string, string>, ...commandLine: string[]): Promise<Outcome> {
  const child = spawn(process.execPath, [MAIN, ...commandLine], {
    env: environmentWith(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let wroteAt = performance.now();
  for (const stream of [child.stdout, child.stderr]) stream.on('data', () => (wroteAt = performance.now()));
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve) => child.once('close', resolve)),
  ]);
  expect(performance.now() - wroteAt).toBeLessThan(PROMPT_MS);
  return { code, stdout, stderr };
}

function environmentWith(env: Record<string, string>): Record<string, string> {
  return { DATABASE_URL: target.url, ENCRYPTION_KEYS: TEST_ENCRYPTION_KEYS, ...env };
}

async function identityOf(key: string) {
  const hash = createHash('sha256').update(key).digest('hex');
  return (await findApiKeysByHash(database.sql, [hash])).get(hash) ?? null;
}

async function emptyDatabase(): Promise<string> {
  const name = `cli_${randomBytes(8).toString('hex')}`;
  await execute(database, `CREATE DATABASE ${name}`);
  const url = new URL(target.url);
  url.pathname = `/${name}`;
  return url.href;
}
