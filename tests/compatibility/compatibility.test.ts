/**
 * Tests that the previous release runs on today's schema: an upgrade runs `rtc db migrate` before it replaces the
 * processes, and a rollback goes back to the old processes, not to the old schema.
 *
 * previous-release.json holds what the previous release sends to PostgreSQL. Record it for each new release:
 * `RECORD_RELEASE=0.1.0 npm test -- --testPathPatterns=tests/compatibility`
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { createTestDatabase, eventually, repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { startFleet } from '../fleet/fleet.testkit.js';
import { Load } from '../fleet/load.testkit.js';
import { receives, startTone, wrtcPlatform } from '../fleet/wrtc.testkit.js';
import { longLocks } from './locks.testkit.js';
import { complaintsOf, rowsOf, withClient, type Release } from './release.testkit.js';
import { dropsIndexSilently, tightenings } from './rules.testkit.js';

const FILE = join(import.meta.dirname, 'previous-release.json');
const MIGRATIONS = join(repositoryRoot, 'prisma', 'migrations');
const RECORD = process.env['RECORD_RELEASE'];

const migrations = readdirSync(MIGRATIONS)
  .filter((name) => /^\d+_/.test(name))
  .sort();
const scriptOf = (name: string) => readFileSync(join(MIGRATIONS, name, 'migration.sql'), 'utf8');
const release = () => JSON.parse(readFileSync(FILE, 'utf8')) as Release;

if (RECORD !== undefined) {
  let load: Load;
  afterAll(() => load.close());
  test('records what this release sends to PostgreSQL', async () => {
    const file = join(temporaryDirectory('statements'), 'statements');
    const preload = join(import.meta.dirname, 'record-statements.mjs');
    const fleet = await startFleet(
      { apis: 1, gateways: 1, cleaners: 1, senders: 1 },
      { RECORD_STATEMENTS: file, NODE_OPTIONS: `--import ${preload}` },
    );
    load = new Load({ url: fleet.nginx.url, key: fleet.stack.tenant.key });
    await everything(load, fleet.receiver.url);
    await fleet.stack.allDelivered().catch(() => undefined);
    // Waits until each timer of the workers has fired once.
    await eventually(() => Date.now() - fleet.senders[0]!.lives[0]!.startedAtMs > 65_000, { timeoutMs: 70_000 });
    const statements = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as string)
      .filter((text) => /^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b/i.test(text));
    const rows = await rowsOf(fleet.stack.databaseUrl);
    const found: Release = { version: RECORD, migrations, statements: [...new Set(statements)].sort(), rows };
    writeFileSync(FILE, `${JSON.stringify(found, null, 2)}\n`);
  }, 240_000);
}

/** Calls each route at least once and produces each way in which a session, an operation and a delivery can end. */
async function everything(load: Load, receiver: string): Promise<void> {
  const [ending, staying] = await Promise.all([load.newRoom(), load.newRoom(), load.newRoom()]);
  const join = (name: string) => load.join(ending, name);
  const [ada, bob, cem] = await Promise.all([join('Ada'), join('Bob'), join('Cem')]);
  // These two have audio, for statements that need a published and a muted track.
  const platform = await wrtcPlatform();
  const [dia, eva] = await Promise.all([load.join(staying, 'Dia', platform), load.join(staying, 'Eva', platform)]);
  const tone = await startTone();
  const [track] = await dia.publish(tone.track, { source: 'microphone' });
  await receives(eva);
  await dia.mute(track!.trackId);
  await load.say(ada, 'hello');
  await ada.updateMetadata({ seat: 1 });
  await cem.leave();
  const path = `/v1/rooms/${ending}`;
  const person = `${path}/participants/${bob.participant.participantId}`;
  for (const get of ['/v1/', '/v1/rooms?limit=2', path, `${path}/participants?limit=2`, person, '/v1/events?limit=5']) {
    await load.insist('GET', get);
  }
  const { nextCursor } = await load.insist('GET', '/v1/rooms?limit=1');
  await load.insist('GET', `/v1/rooms?limit=1&status=created&cursor=${nextCursor}`);
  await load.insist('GET', `/v1/events?limit=5&roomId=${ending}`);
  await load.insist('DELETE', person);
  await load.insist('GET', `${person}/runtime-operation`);
  await load.insist('DELETE', path);
  await load.insist('GET', `${path}/runtime-operation`);

  // No receiver listens at this address, so another attempt follows.
  await load.insist('POST', '/v1/webhooks', { url: 'http://127.0.0.1:65535/closed', events: ['room.created'] });
  await load.newRoom();
  const hook = await load.insist('POST', '/v1/webhooks', { url: `${receiver}/other`, events: ['room.created'] });
  const at = `/v1/webhooks/${hook.id}`;
  await load.insist('GET', '/v1/webhooks?limit=1');
  await load.insist('PATCH', at, { enabled: false });
  await load.insist('PATCH', at, { enabled: true });
  await load.insist('POST', `${at}/rotate-secret`);
  await load.insist('POST', `${at}/test`);
  const deliveries = await eventually(async () => {
    const { data } = await load.insist('GET', `${at}/deliveries?limit=5&status=succeeded`);
    return data.length > 0 && data;
  });
  const delivery = `${at}/deliveries/${deliveries[0].id}`;
  await load.insist('GET', delivery);
  await load.insist('GET', `${delivery}/attempts?limit=5`);
  await load.insist('POST', `${delivery}/replay`, { expectedReplayCount: 0 });
  const recovery = await load.insist('POST', `${at}/recoveries`, {
    since: new Date(Date.now() - 60_000).toISOString(),
  });
  await load.insist('GET', `${at}/recoveries/${recovery.id}`);
  await load.insist('DELETE', `${at}/recoveries/${recovery.id}`);
  await load.insist('DELETE', at);
}

describe('the previous release', () => {
  test('works on today’s schema: its statements can be planned and its rows can be written', async () => {
    const { url } = await createTestDatabase();
    const { statements, rows } = release();
    expect(statements.length).toBeGreaterThan(80);
    expect(Object.keys(rows).length).toBeGreaterThan(12);
    expect(await complaintsOf(release(), url)).toEqual([]);
  });

  test.each([
    ['drops a column', 'ALTER TABLE rooms DROP COLUMN max_participants', /max_participants/],
    ['renames a table', 'ALTER TABLE participant_tokens RENAME TO tokens', /participant_tokens/],
    ['adds a column that must be given', 'ALTER TABLE rooms ADD COLUMN owner TEXT NOT NULL', /rooms: null value/],
    ['forbids null', 'ALTER TABLE rooms ALTER COLUMN media_node_id SET NOT NULL', /rooms: null value/],
    [
      'changes a type',
      'ALTER TABLE webhook_attempts ALTER COLUMN url TYPE INTEGER USING 1',
      /webhook_attempts: invalid input/,
    ],
    ['narrows what is allowed', `ALTER TABLE rooms ADD CHECK (name <> 'Fleet')`, /rooms: new row/],
    ['drops a function', 'DROP FUNCTION callplane_typeid CASCADE', /callplane_typeid/],
  ])('is found incompatible with a migration that %s', async (_, sql, complaint) => {
    const { url } = await createTestDatabase();
    await withClient(url, (client) => client.query(sql));
    expect((await complaintsOf(release(), url)).join('\n')).toMatch(complaint);
  });
});

describe('the migrations since the previous release', () => {
  const since = existsSync(FILE) ? migrations.filter((name) => !release().migrations.includes(name)) : [];

  test('only expand, or state `contract:` with a reason in their header', () => {
    expect(Object.fromEntries(since.map((name) => [name, tightenings(scriptOf(name))]))).toEqual(
      Object.fromEntries(since.map((name) => [name, []])),
    );
  });

  test.each([
    'ALTER TABLE "rooms" DROP COLUMN "name";',
    'DROP TABLE rooms;',
    'ALTER TABLE "rooms" RENAME COLUMN "name" TO "title";',
    'ALTER TABLE "rooms" ALTER COLUMN "name" SET NOT NULL;',
    'ALTER TABLE "rooms" ALTER COLUMN "name" TYPE INTEGER;',
    'ALTER TABLE "rooms" ALTER COLUMN "name" SET DATA TYPE INTEGER;',
    'ALTER TABLE "rooms" ALTER COLUMN "name" DROP DEFAULT;',
    'ALTER TABLE "rooms" ADD COLUMN "owner" TEXT NOT NULL;',
    'ALTER TABLE "rooms" ADD "owner" TEXT NOT NULL, ADD "other" TEXT DEFAULT 1;',
  ])('rejects the tightening migration: %s', (sql) => {
    expect(tightenings(`-- Why: so.\n\n${sql}`)).toHaveLength(1);
    expect(tightenings(`-- Why: so.\n-- contract: unused since 0.2.0\n\n${sql}`)).toEqual([]);
  });

  test.each([
    'ALTER TABLE "rooms" ADD COLUMN "owner" TEXT;',
    'ALTER TABLE "rooms" ADD COLUMN "n" INTEGER NOT NULL DEFAULT 0, ADD COLUMN "m" TEXT[] DEFAULT \'{}\' NOT NULL;',
    'CREATE TABLE "new" ("id" TEXT NOT NULL);',
    'ALTER TABLE "rooms" ALTER COLUMN "name" DROP NOT NULL; -- DROP COLUMN',
    'CREATE FUNCTION f() RETURNS INT LANGUAGE plpgsql AS $$ BEGIN DROP TABLE x; END $$;',
    'DROP INDEX "slow_idx";',
  ])('accepts the expanding migration: %s', (sql) => expect(tightenings(sql)).toEqual([]));

  test('every migration except the first follows the same rules', () => {
    expect(migrations.slice(1).flatMap((name) => tightenings(scriptOf(name)))).toEqual([]);
  });
});

/** Later migrations must say what the previous release does without an index. */
const INDEXES_DROPPED_SILENTLY = '20261122171200_flat_delivery_scans';

test('a migration that drops an index says in its header how the previous release does without', () => {
  const silent = migrations
    .filter((name) => name > INDEXES_DROPPED_SILENTLY)
    .filter((name) => dropsIndexSilently(scriptOf(name)));
  expect(silent).toEqual([]);
  expect(dropsIndexSilently('-- Why: so.\nDROP INDEX CONCURRENTLY "rooms_name_idx";')).toBe(true);
  expect(dropsIndexSilently('-- contract: it reads another one.\nDROP INDEX "rooms_name_idx";')).toBe(false);
});

/** Later migrations run in databases that hold data of users. */
const LOCKED_FREELY = '20261122100000_moderation_history_usage';

describe('migrations that run beside the previous release', () => {
  test('hold no lock for long, or state `long lock:` with a reason in their header', () => {
    const found = migrations
      .filter((name) => name > LOCKED_FREELY)
      .flatMap((name) => longLocks(scriptOf(name)).map((what) => `${name}: ${what}`));
    expect(found).toEqual([]);
  });

  test.each([
    ['CREATE INDEX "a_idx" ON "rooms"("name");', 'builds an index'],
    ['CREATE UNIQUE INDEX a_idx ON rooms (name);', 'builds an index'],
    ['DROP INDEX "rooms_name_idx";', 'drops an index'],
    ['ALTER TABLE "rooms" ADD CONSTRAINT "rooms_n" CHECK ("n" > 0);', 'validates a constraint'],
    ['ALTER TABLE rooms ADD CHECK (n > 0);', 'validates a constraint'],
    ['ALTER TABLE rooms ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES environments (id);', 'validates a constraint'],
    ['ALTER TABLE rooms ADD CONSTRAINT u UNIQUE (name);', 'builds an index'],
    ['ALTER TABLE rooms ADD COLUMN n INTEGER CHECK (n > 0);', 'validates a constraint'],
    ['ALTER TABLE rooms ADD COLUMN n TEXT UNIQUE;', 'builds an index'],
    ['ALTER TABLE rooms ADD COLUMN n UUID NOT NULL DEFAULT gen_random_uuid();', 'rewrites'],
    ["ALTER TABLE rooms ADD COLUMN n TEXT DEFAULT 'a', ADD COLUMN m TEXT DEFAULT callplane_typeid('x');", 'rewrites'],
    ['ALTER TABLE rooms ADD COLUMN n BIGSERIAL;', 'rewrites'],
    ['ALTER TABLE rooms ADD COLUMN n INTEGER GENERATED ALWAYS AS (1) STORED;', 'rewrites'],
    ['ALTER TABLE rooms ALTER COLUMN name TYPE VARCHAR(9);', 'rewrites'],
    ['ALTER TABLE rooms ALTER COLUMN name SET NOT NULL;', 'reads'],
    ["UPDATE rooms SET name = 'x';", 'changes rows'],
    ['WITH gone AS (SELECT 1) DELETE FROM rooms;', 'changes rows'],
    ['ALTER TABLE rooms ADD COLUMN a TEXT; ALTER TABLE participants ADD COLUMN a TEXT;', 'participants, rooms'],
    ['ALTER TABLE rooms ADD COLUMN a TEXT; CREATE TABLE t (id TEXT REFERENCES events (id));', 'events, rooms'],
    ['LOCK TABLE rooms;', 'LOCK'],
    ['BEGIN; ALTER TABLE rooms ADD COLUMN a TEXT; COMMIT;', 'BEGIN'],
    ['CREATE INDEX CONCURRENTLY a ON rooms (a); ALTER TABLE rooms ADD COLUMN a TEXT;', 'other statements'],
    ['CREATE INDEX CONCURRENTLY IF NOT EXISTS a ON rooms (a);', 'IF NOT EXISTS'],
  ])('refuses: %s', (sql, what) => {
    expect(longLocks(`-- Why: so.\n\n${sql}`).join('\n')).toContain(what);
    expect(longLocks(`-- Why: so.\n-- long lock: a handful of rows\n\n${sql}`)).toEqual([]);
  });

  test.each([
    'ALTER TABLE rooms ADD COLUMN n INTEGER NOT NULL DEFAULT -1, ADD COLUMN m TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[];',
    "ALTER TABLE rooms ADD COLUMN a TIMESTAMPTZ(3) NOT NULL DEFAULT now(), ADD COLUMN b JSONB DEFAULT '[1, 2; 3]';",
    'ALTER TABLE rooms ADD CONSTRAINT r CHECK (n IN (1, 2)) NOT VALID, ADD COLUMN n NUMERIC(10, 2);',
    'CREATE TABLE t (id TEXT PRIMARY KEY, at TIMESTAMPTZ DEFAULT clock_timestamp()); CREATE INDEX t_idx ON t (at);',
    'CREATE INDEX CONCURRENTLY a ON rooms (a); DROP INDEX CONCURRENTLY b; ALTER TABLE rooms VALIDATE CONSTRAINT c;',
    'CREATE OR REPLACE FUNCTION f() RETURNS INT LANGUAGE plpgsql AS $$ BEGIN UPDATE rooms SET name = 1; END $$;',
  ])('accepts: %s', (sql) => expect(longLocks(sql)).toEqual([]));
});
