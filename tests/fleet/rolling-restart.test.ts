import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Call } from '@callplane/client-js';
import { freePort } from '@callplane/local-servers';
import { eventually, startTestJanus, startTestNginx, type TestApp } from '@callplane/testing';
import { measured } from '../faults/faults.testkit.js';
import { startReceiver, startWebhookStack } from '../faults/webhooks.testkit.js';
import { Load } from './load.testkit.js';
import { receives, startTone, wrtcPlatform } from './wrtc.testkit.js';

/** Simulates an upgrade behind the load balancer: replaces the instances of each app one by one under load. */

let fleet: Awaited<ReturnType<typeof startFleet>>;
let load: Load;
beforeAll(async () => {
  fleet = await startFleet();
  load = new Load({ url: fleet.nginx.url, key: fleet.stack.tenant.key });
});
afterAll(() => load.close());

/** One place in the fleet, with its current process. */
interface Member {
  port: number;
  app: TestApp;
  spawn(): Promise<TestApp>;
}

async function startMember(spawn: (env: Record<string, string>) => Promise<TestApp>): Promise<Member> {
  const port = await freePort();
  const again = () => spawn({ PORT: String(port), DATABASE_POOL_MAX: '5' });
  return { port, app: await again(), spawn: again };
}

async function replace(member: Member): Promise<void> {
  expect(await member.app.stop()).toMatchObject({ code: 0 });
  member.app = await member.spawn();
}

async function startFleet() {
  const [janus, receiver] = await Promise.all([startTestJanus(), startReceiver()]);
  const stack = await startWebhookStack();
  const media = {
    MEDIA_NODES: `one=${janus.url}`,
    MEDIA_API_SECRET: janus.apiSecret,
    MEDIA_ADMIN_KEY: janus.adminKey,
  };
  // One second longer than nginx keeps idle connections: see infra/nginx/upstreams.conf.
  const startApi = () =>
    startMember((env) => stack.spawnApi({ TRUST_PROXY: '127.0.0.1', DRAIN_IDLE_MS: '5000', ...env }));
  const startGateway = () => startMember((env) => stack.spawnSignaling({ ...media, ...env }));
  const [apis, gateways, cleaner, sender] = await Promise.all([
    Promise.all([startApi(), startApi()]),
    Promise.all([startGateway(), startGateway()]),
    startMember((env) => stack.spawnWorker({ ...media, ...env })),
    startMember((env) => stack.spawnWebhookWorker(env)),
  ]);
  const portsOf = (members: readonly Member[]) => members.map(({ port }) => port);
  const nginx = await startTestNginx({ api: portsOf(apis), signaling: portsOf(gateways) });
  await stack.register(apis[0].app, receiver);
  return { stack, receiver, nginx, apis, gateways, cleaner, sender };
}

test('no request, call, operation or delivery is lost while every app is replaced in turn under load', async () => {
  const { stack, receiver, nginx, apis, gateways, cleaner, sender } = fleet;
  const roomId = await load.newRoom();
  const platform = await wrtcPlatform();
  const calls = await Promise.all(
    ['Ada', 'Bob', 'Cem', 'Dia', 'Eva'].map((name, n) => load.join(roomId, name, n < 2 ? platform : {})),
  );
  const [ada, bob] = calls as [Call, Call];
  const tone = await startTone();
  await ada.publish(tone.track, { source: 'microphone' });
  await receives(bob);
  const running = load.start(2);
  const roomsBegin = async (count: number) => {
    const until = load.rooms.length + count;
    await eventually(() => load.failures.length > 0 || load.rooms.length >= until);
  };

  for (const api of apis) {
    await roomsBegin(2);
    await replace(api);
    // The load balancer uses this instance again before the next one goes.
    await api.app.waitForLog(({ route }) => route === '/v1/rooms');
  }
  for (const gateway of gateways) {
    const { app } = gateway;
    await replace(gateway);
    // A draining gateway logs no warning, not even about the media server that it disconnects from.
    const drains = app.logs.findIndex(({ message }) => message === 'process drains');
    expect(app.logs.slice(drains).filter(({ level }) => level !== 'info')).toEqual([]);
    await gateway.app.waitForLog(({ message }) => message === 'join');
    await everyoneHearsEveryone(calls);
    await receives(bob);
  }
  for (const worker of [cleaner, sender]) {
    await roomsBegin(2);
    await replace(worker);
  }
  await roomsBegin(2);
  load.stop();
  await running;
  expect(load.failures).toEqual([]);

  // No request was refused, and the calls stayed: each participant joined once, and none has left.
  measured({ requests: load.requests, rooms: load.rooms.length, resumed: load.resumed });
  expect([...load.statuses.keys()].filter((status) => status >= 300)).toEqual([]);
  // nginx may refuse a reconnection while it counts both gateways as gone. The client tries again, and its call stays.
  const lines = nginx.output().split('\n');
  expect(lines.filter((line) => line.includes('"status":5') && !line.includes('signaling'))).toEqual([]);
  expect(load.resumed).toBeGreaterThanOrEqual(calls.length);
  const { prisma } = stack.database;
  const stayed = await prisma.event.findMany({ where: { roomId } });
  expect(stayed.map(({ type }) => type).sort()).toEqual([
    ...calls.map(() => 'participant.joined'),
    ...['room.created', 'room.started', 'track.published'],
  ]);
  tone.stop();

  // No work was lost or repeated.
  await eventually(
    async () => (await prisma.runtimeOperation.count({ where: { status: { not: 'completed' } } })) === 0,
  );
  await stack.allDelivered();
  expect(await prisma.runtimeOperation.count({ where: { attempts: { not: 1 } } })).toBe(0);
  const counts = receiver.counts();
  expect(counts.size).toBe(await prisma.event.count());
  expect(new Set(counts.values())).toEqual(new Set([1]));
  const rooms = await prisma.room.findMany({ select: { id: true } });
  expect(rooms.map(({ id }) => id).sort()).toEqual([...load.rooms].sort());
  receiver.check();
});

/** Resolves once each participant has received a new message of each other one. */
async function everyoneHearsEveryone(calls: readonly Call[]): Promise<void> {
  const heard = new Set<string>();
  for (const call of calls) call.on('message', ({ from }) => heard.add(`${from} ${call.sessionId}`));
  await eventually(
    async () => {
      await Promise.all(calls.map((call) => load.say(call, 'hello')));
      return heard.size === calls.length * (calls.length - 1);
    },
    { intervalMs: 500 },
  );
}
