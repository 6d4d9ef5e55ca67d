import { once } from 'node:events';
import { get } from 'node:https';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { WebSocket } from 'ws';
import { SUBPROTOCOL } from '@callplane/protocol';
import { eventually, newCertificate, openTurnClient, turnCredential, type TestCertificate } from '@callplane/testing';
import { measured } from '../faults/faults.testkit.js';
import { startReceiver, type Receiver } from '../faults/webhooks.testkit.js';
import { Load } from '../fleet/load.testkit.js';
import { receives, startTone, wrtcPlatform } from '../fleet/wrtc.testkit.js';
import { deploy, HOST_SEEN_BY_CONTAINERS, UP_WITHIN_MS, type Deployment } from './compose.testkit.js';

/**
 * Tests docker-compose.yml on a real Docker engine, from `docker compose up --build` on: the operator's commands, and
 * their effect on callers. Only `npm run test:containers` runs it.
 */

const APPS = ['api', 'signaling', 'cleanup-worker', 'recorder', 'webhook-worker'];
const SERVERS = ['load-balancer', 'postgres', 'redis', 'janus', 'coturn'];
/** For steps that take seconds on an idle machine. */
const PATIENT_MS = 3 * 60_000;
// Ends a test that hangs, also on a loaded machine: a replacement of every app takes more than four minutes there.
jest.setTimeout(20 * 60_000);

let deployment: Deployment;
let receiver: Receiver;
let load: Load;
let key: string;

beforeAll(async () => {
  deployment = await deploy();
}, UP_WITHIN_MS);
afterAll(() => load.close());

interface Container {
  Service: string;
  Health: string;
  State: string;
  ExitCode: number;
}
async function containers(): Promise<Container[]> {
  const lines = await deployment.compose('ps', '--all', '--format', 'json');
  return lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Container);
}

test('every container becomes healthy, with the configured number of replicas, after the migration has ended', async () => {
  await eventually(
    async () => {
      const all = (await containers()).map(({ Service, Health, State }) => `${Service} ${Health || State}`);
      const twice = ['api', 'signaling', 'cleanup-worker'];
      expect(all.sort()).toEqual(
        [...twice, ...APPS, ...SERVERS]
          .map((service) => `${service} healthy`)
          .concat('migrate exited')
          .sort(),
      );
      return true;
    },
    { timeoutMs: PATIENT_MS, intervalMs: 1000 },
  );
  expect((await containers()).find(({ Service }) => Service === 'migrate')?.ExitCode).toBe(0);
  const { data } = await deployment.rtc('doctor');
  expect(data.filter(({ status }: { status: string }) => status !== 'ok')).toEqual([]);
});

test.each([...APPS, ...SERVERS])(
  '%s does not run as root, and no command line contains its secrets',
  async (service) => {
    const status = await deployment.exec(service, 'cat', '/proc/1/status');
    expect(/^Uid:\s+(\d+)/m.exec(status)?.[1]).not.toBe('0');
    const command = await deployment.exec(service, 'cat', '/proc/1/cmdline');
    // infra/secrets.sh creates them from 24 random bytes in hexadecimal.
    expect(command).not.toMatch(/[0-9a-f]{48}/);
  },
);

test('a backend gets a key and registers a webhook, and signed events arrive', async () => {
  const project = await deployment.rtc('projects', 'create', '--name', 'Containers');
  const environment = await deployment.rtc('environments', 'create', '--project', project.id, '--name', 'production');
  ({ key } = await deployment.rtc('keys', 'create', '--env', environment.id, '--type', 'secret'));
  load = new Load({ url: deployment.url, key });
  receiver = await startReceiver(HOST_SEEN_BY_CONTAINERS);
  const endpoint = await load.insist('POST', '/v1/webhooks', { url: `${receiver.url}/hook` });
  receiver.learn('/hook', 1, endpoint.signingSecret);
  const roomId = await load.newRoom();
  await eventually(() => receiver.rooms('room.created').get(roomId) === 1);
  receiver.check();
});

test.each(['all', 'relay'] as const)(
  'two participants exchange audio through the gateway, Janus and coturn (%s)',
  async (iceTransportPolicy) => {
    const platform = await wrtcPlatform();
    const roomId = await load.newRoom();
    const join = (name: string) => load.join(roomId, name, platform, { iceTransportPolicy });
    const [ada, bob] = await Promise.all([join('Ada'), join('Bob')]);
    const tone = await startTone();
    await ada.publish(tone.track, { source: 'microphone' });
    await receives(bob);
    tone.stop();
    await load.insist('DELETE', `/v1/rooms/${roomId}`);
    await eventually(() => bob.closeInfo?.reason === 'room_ended');
    await eventually(() => receiver.rooms('room.ended').get(roomId) === 1);
  },
);

test('webhook workers scale independently', async () => {
  await deployment.compose('up', '--detach', '--no-recreate', '--scale', 'webhook-worker=3');
  await eventually(
    async () => {
      const { data } = await deployment.rtc('queues');
      return data.find(({ queue }: { queue: string }) => queue === 'webhook-delivery').redis.workers === 3;
    },
    { timeoutMs: PATIENT_MS, intervalMs: 1000 },
  );
});

test('infra/replace.sh replaces every app under load without a failed request, and calls continue', async () => {
  const before = new Set((await deployment.compose('ps', '--quiet', ...APPS)).trim().split('\n'));
  const running = load.start(2);
  const roomId = await load.newRoom();
  const stay = await Promise.all(['Ada', 'Bob'].map((name) => load.join(roomId, name)));
  const moreRooms = async () => {
    const until = load.rooms.length + 5;
    await eventually(() => load.rooms.length >= until, { timeoutMs: PATIENT_MS });
  };
  await moreRooms();
  await deployment.script('replace.sh', ...APPS);
  await moreRooms();
  load.stop();
  await running;
  const after = (await deployment.compose('ps', '--quiet', ...APPS)).trim().split('\n');
  const statuses = [...load.statuses.keys()];
  measured({ requests: load.requests, rooms: load.rooms.length, resumed: load.resumed });
  expect(after).toHaveLength(before.size);
  expect(after.filter((id) => before.has(id))).toEqual([]);
  const output = await deployment.compose('logs', '--no-log-prefix', 'load-balancer');
  expect(output.split('\n').filter((line) => /"status":5/.test(line))).toEqual([]);
  expect(statuses.filter((status) => status >= 300)).toEqual([]);
  expect(load.failures).toEqual([]);
  expect(stay.map(({ state }) => state)).toEqual(['connected', 'connected']);
  expect(load.resumed).toBeGreaterThan(0);
  await load.insist('DELETE', `/v1/rooms/${roomId}`);
  for (const id of load.rooms.slice(-3)) {
    await eventually(() => receiver.rooms('room.created').get(id) === 1, { timeoutMs: PATIENT_MS });
  }
  receiver.check();
});

test('Prometheus finds every replica of every app', async () => {
  await deployment.compose('--profile', 'observability', 'up', '--detach', '--no-recreate', 'prometheus');
  const url = `http://${await deployment.published('prometheus', 9090)}`;
  const replicas = (await deployment.compose('ps', '--quiet', ...APPS)).trim().split('\n');
  await eventually(
    async () => {
      const response = await fetch(`${url}/api/v1/targets`);
      const { data } = (await response.json()) as { data: { activeTargets: { health: string; scrapePool: string }[] } };
      // The exporter of the machine does not run here.
      const apps = data.activeTargets.filter(({ scrapePool }) => scrapePool === 'callplane');
      expect(apps.map(({ health }) => health)).toEqual(replicas.map(() => 'up'));
      return true;
    },
    { timeoutMs: PATIENT_MS, intervalMs: 1000 },
  );
});

test('infra/tls.compose.yml accepts only TLS, for https and TURN, and uses a renewed certificate after a reload', async () => {
  const selfSigned = () => newCertificate('IP:127.0.0.1', 'DNS:turn.callplane.test');
  const first = selfSigned();
  deployment.installCertificate(first);
  const port = await deployment.addTls();
  const ask = ({ cert }: TestCertificate) =>
    new Promise<number | undefined>((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}` };
      get({ port, host: '127.0.0.1', path: '/v1/', ca: cert, headers, agent: false }, (response) =>
        resolve(response.resume().statusCode),
      ).once('error', reject);
    });
  expect(await ask(first)).toBe(200);
  const socket = new WebSocket(`wss://127.0.0.1:${port}/v1/signaling`, SUBPROTOCOL, { ca: first.cert });
  await once(socket, 'open');
  await expect(fetch(`${deployment.url}/v1/`)).rejects.toThrow();
  const relay = await openTurnClient({
    host: '127.0.0.1',
    port,
    ...turnCredential(deployment.turnSecret(), 'env_1:tls'),
    transport: 'tls',
    tls: { servername: 'turn.callplane.test', ca: first.cert },
  });
  expect(await relay.allocate()).toBe(0);

  const renewed = selfSigned();
  deployment.installCertificate(renewed);
  await deployment.compose('kill', '--signal', 'HUP', 'load-balancer');
  await eventually(async () => (await ask(renewed)) === 200);
  // The former workers of nginx accept connections for a moment longer.
  await eventually(() =>
    ask(first).then(
      () => false,
      (error: unknown) => /self-signed|signature/.test(String(error)),
    ),
  );
  // The reload keeps existing connections open.
  expect(socket.readyState).toBe(WebSocket.OPEN);
  expect(await relay.refresh()).toBe(0);
  relay.close();
  socket.terminate();
});

test('apps stop by themselves with exit code 0', async () => {
  await deployment.compose('stop', ...APPS);
  const stopped = (await containers()).filter(({ Service }) => APPS.includes(Service));
  expect(stopped.map(({ ExitCode }) => ExitCode)).toEqual(stopped.map(() => 0));
});
