import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { beforeAll, expect, test } from '@jest/globals';
import { WebSocket } from 'ws';
import { connect } from '@callplane/client-js';
import { freePort, isAlive } from '@callplane/local-servers';
import { MediaNode, parseMediaNodes } from '@callplane/media';
import { createClient } from '@callplane/server';
import { eventually, freezeVideoRoom, repositoryRoot, stopAtEnd } from '@callplane/testing';
import { measured } from './faults/faults.testkit.js';
import { environmentOf, localStarts, READY_MS, type Dev, type Start } from './start.testkit.js';

/**
 * A newcomer's way through one `npm start`, in this order: its screen and files, receivers of the documentation, an
 * outage of theirs and the recovery; then killed processes, and the starts after it. Port 8082 is taken, as on many
 * machines of developers. snippets.test.ts runs the commands of the README.
 */

/** Serves the route of Next.js as Next.js does: a standard `Request` in, a standard `Response` out. */
const SERVE_ROUTE = `
  import { createServer } from 'node:http';
  import { POST } from ${JSON.stringify(join(repositoryRoot, 'packages/webhook-verifier/examples/nextjs/route.mjs'))};
  createServer(async (request, response) => {
    const { method, headers } = request;
    const answer = await POST(new Request('http://localhost/', { method, headers, body: request, duplex: 'half' }));
    response.writeHead(answer.status).end();
  }).listen(process.env.PORT, '127.0.0.1', () => console.log('listening on the port'));`;

const local = localStarts();
let npm: Start;
let dev: Dev;
beforeAll(async () => {
  const taken = createServer();
  // The port is taken, whether by this server or by another program.
  await new Promise<void>((resolve) => taken.once('error', () => resolve()).listen(8082, '127.0.0.1', resolve));
  npm = local.start({ SIGNALING_PORT: '' }, ['npm', 'start']);
  dev = await local.ready(npm);
  taken.close();
});

test('prints a link to a page whose visitors get tokens for a reachable gateway', async () => {
  expect(npm.output()).toMatch(`${dev.demoUrl}   (open it in two tabs)`);
  const { host } = new URL(dev.demoUrl);
  expect(Number(host.split(':')[1])).toBeGreaterThan(8082);
  expect(dev.demoUrl).toBe(`http://${host}/demo/`);
  expect(Number(new URL(dev.signalingUrl).port)).toBeGreaterThan(8082);
  expect(await (await fetch(dev.demoUrl)).text()).toContain('Join a call');
  const joined = await fetch(`${dev.demoUrl}api/join`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ room: 'demo', name: 'Ada' }),
  });
  expect(joined.status).toBe(200);
  const { token, roomId } = (await joined.json()) as { token: string; roomId: string };
  const call = await connect({ url: `ws://${host}/v1/signaling`, token, platform: { WebSocket: WebSocket } });
  expect(call.room['id']).toBe(roomId);
  await call.leave();
});

test('writes dev.json for scripts, readable for its user alone, and shows a secret key only to a terminal', () => {
  const { output } = npm;
  for (const file of ['dev.json', 'secrets.json', 'development.json']) {
    expect(statSync(join(local.dataDir(), file)).mode & 0o777).toBe(0o600);
  }
  // A log file would keep the secret key.
  expect(output()).not.toContain(dev.secretKey);
  expect(output()).toContain(`Secret key       in ${local.devFile()}`);
  const pasted = /^ +(export BASE=.*)$/m.exec(output())![1]!;
  expect(spawnSync('sh', ['-c', `${pasted}; printf %s "$KEY"`], { encoding: 'utf8' }).stdout).toBe(dev.secretKey);
});

test('ends empty rooms after 15 minutes, and shows where each app has its metrics', async () => {
  expect(environmentOf(local.pidOf('cleanup-worker'))['ROOM_EMPTY_TIMEOUT_SECONDS']).toBe('900');
  const apps = ['api', 'cleanup-worker', 'webhook-worker', 'recorder', 'signaling'];
  expect(Object.keys(dev.metricsUrls)).toEqual(apps);
  for (const name of apps) {
    expect(npm.output()).toContain(`${dev.metricsUrls[name]}   (${name})`);
    expect(await (await fetch(dev.metricsUrls[name]!)).text()).toContain(`app="${name}"`);
  }
});

test('shows no requests by default', async () => {
  await fetch(`${dev.baseUrl}/`, { headers: { authorization: `Bearer ${dev.secretKey}` } });
  const log = join(local.dataDir(), 'logs', 'api.log');
  await eventually(() => readFileSync(log, 'utf8').includes('"message":"request"'));
  expect(npm.output()).not.toContain('"level":"info"');
  expect(npm.output()).toContain('npm start -- --verbose');
});

test('lets rtc find its servers, and the standard output of rtc contains only the output of the command', async () => {
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], DATA_DIR: local.dataDir() };
  const rtc = (...args: string[]) =>
    spawnSync('npm', ['run', '--silent', 'rtc', '--', ...args], { cwd: repositoryRoot, encoding: 'utf8', env });
  const direct = (more: Record<string, string>, ...args: string[]) =>
    spawnSync(join(repositoryRoot, 'rtc'), args, { cwd: tmpdir(), encoding: 'utf8', env: { ...env, ...more } });
  const elsewhere = { DATA_DIR: join(local.dataDir(), 'not-started') };
  expect(direct(elsewhere, 'projects', 'list')).toMatchObject({
    status: 2,
    stdout: '',
    stderr: expect.stringMatching(/^The local start does not run: start it with "npm start".*\n$/),
  });
  expect(direct(elsewhere, '--help').status).toBe(0);
  expect(direct({}, 'projects', 'list', '--json')).toMatchObject({ status: 0, stderr: '' });
  // The key of the start is for its own API alone.
  const listed = direct({}, 'api', 'readContext', '--json');
  expect(JSON.parse(listed.stdout)).toMatchObject({ environmentId: dev.environmentId, keyType: 'secret' });
  expect(direct({}, 'api', 'readContext', '--url', 'http://127.0.0.1:1').stderr).toContain('CALLPLANE_API_KEY');
  const made = rtc('keys', 'create', '--env', dev.environmentId, '--type', 'secret', '--json');
  expect(made.status).toBe(0);
  const { key } = JSON.parse(made.stdout) as { key: string };
  const context = await fetch(`${dev.baseUrl}/`, { headers: { authorization: `Bearer ${key}` } });
  expect(context.status).toBe(200);
  expect(rtc('keys', 'create', '--env', dev.environmentId, '--type', 'golden').status).toBe(2);
});

test('the receivers of the documentation verify the first webhook, and after an outage one call sends the rest', async () => {
  const callplane = createClient({ baseUrl: dev.baseUrl, apiKey: dev.secretKey });
  const receivers = await Promise.all(
    ['express.mjs', 'fastify.mjs', 'nextjs/route.mjs'].map(async (name) => {
      const port = await freePort();
      const url = `http://127.0.0.1:${port}/webhooks`;
      const { id, signingSecret } = await callplane.createWebhook({ url, events: ['room.created'] });
      const start = () => startExample(name, port, signingSecret);
      return { endpointId: id, start, receiver: await start() };
    }),
  );
  const eventOf = async (roomId: string) =>
    eventually(async () => (await callplane.listEvents({ roomId, limit: 1 })).data[0]?.id);
  const first = await callplane.createRoom({ name: 'First' });
  const line = `processing room.created ${await eventOf(first.id)}`;
  const latest = async (endpointId: string) => (await callplane.listDeliveries({ endpointId, limit: 1 })).data[0];
  await Promise.all(
    receivers.map(async ({ endpointId, receiver }) => {
      await eventually(() => receiver.processed().includes(line));
      // A receiver that stops before its answer arrives gets the event again.
      await eventually(async () => (await latest(endpointId))?.status === 'succeeded');
    }),
  );

  const since = new Date(Date.now() - 60_000).toISOString();
  await Promise.all(receivers.map(({ receiver }) => receiver.stop()));
  const missed = await callplane.createRoom({ name: 'Missed' });
  const later = `processing room.created ${await eventOf(missed.id)}`;
  for (const { endpointId, start } of receivers) {
    await eventually(async () => {
      const delivery = await latest(endpointId);
      return delivery?.status === 'pending' && delivery.attempts > 0;
    });
    const receiver = await start();
    const calledAt = performance.now();
    await callplane.createRecovery({ endpointId, since });
    await eventually(() => receiver.processed().includes(later));
    measured({ 'ms from the call to the missed event': performance.now() - calledAt });
    expect(receiver.processed()).toEqual([later]);
  }
});

test('lends PostgreSQL and Redis to another start, which uses the given media servers and has keys of its own', async () => {
  const otherDir = join(local.dataDir(), '..', 'other');
  const otherPorts = { PORT: String(await freePort()), SIGNALING_PORT: String(await freePort()) };
  const verbose = [process.execPath, 'scripts/dev.mjs', 'start', '--verbose'];
  const environment = {
    DATA_DIR: otherDir,
    ...otherPorts,
    DATABASE_URL: dev.databaseUrl,
    REDIS_URL: dev.redisUrl,
    MEDIA_NODES: 'theirs=ws://127.0.0.1:9',
    MEDIA_API_SECRET: 'their-api-secret',
    MEDIA_ADMIN_KEY: 'their-admin-key',
    ENCRYPTION_KEYS: (
      JSON.parse(readFileSync(join(local.dataDir(), 'secrets.json'), 'utf8')) as { encryptionKeys: string }
    ).encryptionKeys,
  };
  const second = local.start(environment, verbose);
  await eventually(() => existsSync(join(otherDir, 'dev.json')), { timeoutMs: READY_MS });
  const other = JSON.parse(readFileSync(join(otherDir, 'dev.json'), 'utf8')) as Dev;
  expect(other).toMatchObject({ databaseUrl: dev.databaseUrl, redisUrl: dev.redisUrl });
  expect(other.processes.map(({ name }) => name)).not.toContain('postgres');
  expect(other.processes.map(({ name }) => name)).not.toContain('redis');
  expect(other.processes.map(({ name }) => name)).not.toContain('janus');
  const api = other.processes.find(({ name }) => name === 'api')!;
  expect(environmentOf(api.pid)['MEDIA_NODES']).toBe('theirs=ws://127.0.0.1:9');
  expect(other.environmentId).not.toBe(dev.environmentId);
  await fetch(`${other.baseUrl}/`, { headers: { authorization: `Bearer ${other.secretKey}` } });
  await eventually(() => /^api +\| .*"message":"request"/m.test(second.output()));
  second.child.kill('SIGTERM');
  expect(await second.ended).toBe(0);
});

test('restarts each process that is killed', async () => {
  for (const name of ['api', 'signaling', 'cleanup-worker', 'redis', 'postgres', 'coturn', 'janus']) {
    const before = local.pidOf(name);
    process.kill(before, 'SIGKILL');
    await eventually(() => local.pidOf(name) !== before && npm.output().includes(`${name} restarted`), {
      timeoutMs: READY_MS,
    });
    // A process that ran for 30 s restarts at once.
    expect(npm.output()).toMatch(new RegExp(`${name} was ended by SIGKILL; restarts in 0(\\.5)? s`));
    expect(isAlive(local.pidOf(name))).toBe(true);
  }
  const callplane = createClient({ baseUrl: dev.baseUrl, apiKey: dev.secretKey });
  await eventually(() => callplane.createRoom({ name: 'Again' }), { timeoutMs: READY_MS });
});

test('restarts a Janus whose VideoRoom is frozen, although it answers', async () => {
  const before = local.pidOf('janus');
  const settings = environmentOf(local.pidOf('signaling'));
  const { MEDIA_NODES = '', MEDIA_API_SECRET: apiSecret = '', MEDIA_ADMIN_KEY: adminKey = '' } = settings;
  const [address] = parseMediaNodes(MEDIA_NODES);
  const node = new MediaNode({ ...address!, apiSecret, adminKey, random: Math.random, allowOutdated: true });
  stopAtEnd(() => node.close());
  await node.untilUp(READY_MS);
  await freezeVideoRoom(await node.openSession(), adminKey);
  await eventually(() => local.pidOf('janus') !== before, { timeoutMs: READY_MS });
  expect(isAlive(before)).toBe(false);
  await node.untilUp(READY_MS);
});

test('refuses a second start on the same data; killed, it leaves nothing behind, and the next start has the data', async () => {
  const { id: roomId } = await createClient({ baseUrl: dev.baseUrl, apiKey: dev.secretKey }).createRoom({
    name: 'Kept',
  });
  const second = local.start({ PORT: String(await freePort()), SIGNALING_PORT: '' });
  expect(await second.ended).toBe(1);
  const [, pid] = /Another start \(process (\d+)\) uses /.exec(second.output())!;

  const { processes } = local.readDev();
  const killedAt = performance.now();
  process.kill(Number(pid), 'SIGKILL');
  await eventually(() => !processes.some((each) => isAlive(each.pid)));
  measured({ 'ms from the kill of the start to the end of its last process': performance.now() - killedAt });
  await npm.ended;

  const third = local.start();
  const again = await local.ready(third);
  expect(third.output()).not.toContain('Installing');
  expect(again.secretKey).toBe(dev.secretKey);
  const callplane = createClient({ baseUrl: again.baseUrl, apiKey: again.secretKey });
  expect((await callplane.listRooms({ limit: 1 })).data[0]).toMatchObject({ id: roomId, name: 'Kept' });

  third.child.kill('SIGTERM');
  expect(await third.ended).toBe(0);
  expect(again.processes.filter((each) => isAlive(each.pid))).toEqual([]);
  expect(existsSync(local.devFile())).toBe(false);
});

/** Starts a receiver of docs/receivers.md as its reader would. It prints a line for each event that it processes. */
async function startExample(name: string, port: number, secret: string) {
  const args = name.startsWith('nextjs/')
    ? ['--input-type=module', '--eval', SERVE_ROUTE]
    : [join(repositoryRoot, 'packages/webhook-verifier/examples', name)];
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'], PORT: String(port), WEBHOOK_SECRETS: JSON.stringify({ 1: secret }) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  stopAtEnd(stop);
  await eventually(() => lines.some((line) => line.startsWith('listening on')));
  return { stop, processed: () => lines.filter((line) => line.startsWith('processing')) };
}
