import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Call } from '@callplane/client-js';
import { eventually } from '@callplane/testing';
import { measured } from '../faults/faults.testkit.js';
import { keepCalling } from './calling.testkit.js';
import { servesAgain, startFleet, type Fleet } from './fleet.testkit.js';
import { Load } from './load.testkit.js';
import type { Member } from './members.testkit.js';
import { receives, startTone, wrtcPlatform } from './wrtc.testkit.js';

/** Simulates an upgrade behind the load balancer: replaces the instances of each app one by one under load. */

let fleet: Fleet;
let load: Load;

beforeAll(async () => {
  fleet = await startFleet({ apis: 2, gateways: 2, cleaners: 2, senders: 2 });
  load = new Load({ url: fleet.nginx.url, key: fleet.stack.tenant.key });
});
afterAll(() => load.close());

test('no request fails while each API is replaced in turn', async () => {
  const calling = keepCalling({ url: fleet.nginx.url, key: fleet.stack.tenant.key });
  for (const api of fleet.apis) {
    await calling.atLeast(100);
    await api.suffer('restarted');
    // Replaces the next instance only after this one serves again.
    await api.current.waitForLog(({ route }) => route === '/v1/rooms');
  }
  await calling.atLeast(100);
  const { statuses, created } = await calling.stop();
  expect(Object.keys(statuses).sort()).toEqual(['200', '201']);
  // Each room that was acknowledged with 201 exists exactly once.
  expect(await fleet.stack.database.prisma.room.count({ where: { name: 'Load' } })).toBe(created);
  measured({ 'rooms made': created });
});

test('calls continue while each gateway is replaced in turn, everybody resumes in time, and no participant leaves', async () => {
  const rooms = await Promise.all(Array.from({ length: 4 }, () => load.newRoom()));
  const platform = await wrtcPlatform();
  const groups: Call[][] = [];
  // The first room has audio: one participant publishes and one listens. The others have no media.
  for (const [n, roomId] of rooms.entries()) {
    const names = ['Ada', 'Bob', 'Cem', 'Dia', 'Eva'];
    groups.push(await Promise.all(names.map((name, k) => load.join(roomId, name, n === 0 && k < 2 ? platform : {}))));
  }
  const calls = groups.flat();
  const [ada, bob] = calls as [Call, Call];
  const tone = await startTone();
  await ada.publish(tone.track, { source: 'microphone' });
  await receives(bob);
  const absences = watchAbsences(calls);
  const traffic = startMessages(groups);

  for (const gateway of fleet.gateways) {
    await traffic.everyoneHasReceived();
    const { current } = gateway;
    await gateway.suffer('restarted');
    // A draining gateway logs no warning, not even about the media server that it disconnects from.
    const goes = current.logs.findIndex(({ message }) => message === 'process drains');
    expect(current.logs.slice(goes).filter(({ level }) => level !== 'info')).toEqual([]);
    await servesAgain(fleet.nginx, gateway);
    await eventually(() => calls.every(({ state }) => state === 'connected'));
    await traffic.everyoneHasReceived();
    await receives(bob);
  }
  const { sent, refused } = await traffic.stop();
  const gaps = absences();
  measured({
    calls: calls.length,
    'connections moved': gaps.length,
    'ms away at most': Math.max(...gaps),
    messages: sent,
    refused,
  });
  // Both gateways had connections, and each connection moved at least once.
  expect(gaps.length).toBeGreaterThanOrEqual(calls.length);
  // Below the grace. Clients take about a second on an idle machine.
  expect(Math.max(...gaps)).toBeLessThan(14_000);
  for (const [n, roomId] of rooms.entries()) {
    const rows = await fleet.stack.database.prisma.event.findMany({ where: { roomId } });
    expect(rows.map(({ type }) => type).sort()).toEqual([
      ...Array.from({ length: 5 }, () => 'participant.joined'),
      ...['room.created', 'room.started'],
      ...(n === 0 ? ['track.published'] : []),
    ]);
  }
  tone.stop();
  await Promise.all(calls.map((call) => call.leave()));
});

test('no work is lost or repeated while the workers of both kinds are replaced in turn under load', async () => {
  const { stack, receiver, cleaners, senders } = fleet;
  const { prisma } = stack.database;
  const made = load.rooms.length;
  const running = load.start(3);
  const since = (count: number) => eventually(() => load.rooms.length >= count);
  const replace = async (workers: readonly Member[]) => {
    for (const worker of workers) {
      await since(load.rooms.length + 3);
      await worker.suffer('restarted');
    }
  };
  await Promise.all([replace(cleaners), replace(senders)]);
  await since(load.rooms.length + 3);
  load.stop();
  await running;
  expect(load.failures).toEqual([]);
  await eventually(
    async () => (await prisma.runtimeOperation.count({ where: { status: { not: 'completed' } } })) === 0,
  );
  await stack.allDelivered();
  measured({ rooms: load.rooms.length - made, deliveries: receiver.requests.length });
  expect(await prisma.runtimeOperation.count({ where: { attempts: { not: 1 } } })).toBe(0);
  expect([...(await stack.leasesLost())]).toEqual([]);
  const counts = receiver.counts();
  expect(counts.size).toBe(await prisma.event.count());
  expect([...counts.values()].filter((count) => count !== 1)).toEqual([]);
  for (const roomId of load.rooms.slice(made)) expect(receiver.rooms('room.ended').get(roomId)).toBe(1);
  receiver.check();
});

test('the instances get the caller’s real address and ignore the address that a caller claims', async () => {
  const response = await fetch(`${fleet.nginx.url}/v1/`, {
    headers: {
      authorization: `Bearer ${fleet.stack.tenant.key}`,
      'x-forwarded-for': '203.0.113.9',
      'x-request-id': 'seen-by-the-api',
    },
  });
  expect(response.status).toBe(200);
  const line = await Promise.any(
    fleet.apis.map(({ current }) => current.waitForLog(({ requestId }) => requestId === 'seen-by-the-api')),
  );
  expect(JSON.stringify(line)).not.toContain('203.0.113.9');
  // The API writes the line after its response.
  await eventually(() => fleet.nginx.output().includes('"requestId":"seen-by-the-api"'));
  expect(fleet.nginx.output()).not.toContain(fleet.stack.tenant.key);
});

test('health checks and metrics of the instances are not public', async () => {
  for (const path of ['/livez', '/readyz', '/metrics']) {
    expect((await fetch(`${fleet.nginx.url}${path}`)).status).toBe(404);
  }
});

/** Returns a function that lists how long each lost connection was away, in milliseconds. */
function watchAbsences(calls: readonly Call[]): () => number[] {
  const gaps: number[] = [];
  for (const call of calls) {
    let lostAt = 0;
    call.on('state', (state) => {
      if (state === 'reconnecting') lostAt = performance.now();
      if (state === 'connected') gaps.push(performance.now() - lostAt);
    });
  }
  return () => gaps;
}

/** Makes every participant send messages repeatedly, and records what each one received. */
function startMessages(groups: readonly (readonly Call[])[]) {
  const calls = groups.flat();
  let sent = 0;
  let stopping = false;
  const before = { ...load.messages };
  /** The latest message that each participant received from each other one. */
  const received = new Map<Call, Map<string, number>>(calls.map((call) => [call, new Map()]));
  for (const call of calls) call.on('message', ({ from, data }) => received.get(call)!.set(from, data as number));
  const speakers = calls.map(async (call) => {
    while (!stopping) {
      await load.say(call, (sent += 1));
      await delay(500);
    }
  });
  return {
    /** Resolves once each participant has received a message of each other one that was sent after this call. */
    async everyoneHasReceived() {
      const from = sent;
      await eventually(() =>
        groups.every((group) =>
          group.every((listener) =>
            group.every(
              (speaker) =>
                listener === speaker || (received.get(listener)!.get(speaker.participant.participantId) ?? 0) > from,
            ),
          ),
        ),
      );
    },
    async stop() {
      stopping = true;
      await Promise.all(speakers);
      return { sent: load.messages.sent - before.sent, refused: load.messages.refused - before.refused };
    },
  };
}
