import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, test } from '@jest/globals';
import type { Call } from '@callplane/client-js';
import { eventually } from '@callplane/testing';
import { measured } from '../faults/faults.testkit.js';
import { keepCalling } from './calling.testkit.js';
import { servesAgain, startFleet, type Fleet } from './fleet.testkit.js';
import { Load } from './load.testkit.js';
import type { Member } from './members.testkit.js';
import { receives, startTone, wrtcPlatform } from './wrtc.testkit.js';

/** An upgrade behind the load balancer: the instances of each app are replaced one after the other under load. */

let fleet: Fleet;
let load: Load;

beforeAll(async () => {
  fleet = await startFleet({ apis: 2, gateways: 2, cleaners: 2, senders: 2 });
  load = new Load({ url: fleet.nginx.url, key: fleet.stack.tenant.key });
}, 120_000);

test('no request fails while each API is replaced in turn', async () => {
  const calling = keepCalling({ url: fleet.nginx.url, key: fleet.stack.tenant.key });
  for (const api of fleet.apis) {
    await calling.atLeast(100);
    await api.suffer('restarted');
    // The next one goes only when this one serves again.
    await api.current.waitForLog(({ route }) => route === '/v1/rooms');
  }
  await calling.atLeast(100);
  const { statuses, created } = await calling.stop();
  expect(Object.keys(statuses).sort()).toEqual(['200', '201']);
  // What was answered 201 is there, once.
  expect(await fleet.stack.database.prisma.room.count({ where: { name: 'Load' } })).toBe(created);
  measured({ 'rooms made': created });
}, 90_000);

test('calls go on while each gateway is replaced in turn: everybody comes back in time, and nobody leaves by it', async () => {
  const rooms = await Promise.all(Array.from({ length: 4 }, () => load.newRoom()));
  const platform = await wrtcPlatform();
  const groups: Call[][] = [];
  // The first room has sound: one who publishes and one who listens. The others are there without media.
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
  const talk = keepTalking(groups);

  for (const gateway of fleet.gateways) {
    await talk.everybodyIsHeard();
    const { current } = gateway;
    await gateway.suffer('restarted');
    // It complains of nothing while it goes, not even of the media server that it leaves.
    const goes = current.logs.findIndex(({ message }) => message === 'process drains');
    expect(current.logs.slice(goes).filter(({ level }) => level !== 'info')).toEqual([]);
    await servesAgain(fleet.nginx, gateway);
    await eventually(() => calls.every(({ state }) => state === 'connected'));
    await talk.everybodyIsHeard();
    await receives(bob);
  }
  const { sent, refused } = await talk.stop();
  const gaps = absences();
  measured({
    ...{ calls: calls.length, 'connections moved': gaps.length, 'ms away at most': Math.max(...gaps) },
    ...{ messages: sent, refused },
  });
  // Both gateways held some, and each of these moved once at least.
  expect(gaps.length).toBeGreaterThanOrEqual(calls.length);
  // A third of the grace.
  expect(Math.max(...gaps)).toBeLessThan(5000);
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
}, 120_000);

test('both kinds of workers are replaced in turn under load: nothing is lost, and nothing is done twice', async () => {
  const { stack, receiver, cleaners, senders } = fleet;
  const { prisma } = stack.database;
  const made = load.rooms.length;
  const running = load.start(3);
  const since = (count: number) => eventually(() => load.rooms.length >= count, { timeoutMs: 30_000 });
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
}, 120_000);

test('the instances see the caller, and what a caller claims of itself is not believed', async () => {
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
  // It writes the line after the answer.
  await eventually(() => fleet.nginx.output().includes('"requestId":"seen-by-the-api"'));
  expect(fleet.nginx.output()).not.toContain(fleet.stack.tenant.key);
});

test('health and metrics of the instances are not for the world', async () => {
  for (const path of ['/livez', '/readyz', '/metrics']) {
    expect((await fetch(`${fleet.nginx.url}${path}`)).status).toBe(404);
  }
});

/** Tells how long each of the connections that were lost was away, in milliseconds. */
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

/** Everybody says something again and again, and what somebody heard is known. */
function keepTalking(groups: readonly (readonly Call[])[]) {
  const calls = groups.flat();
  let said = 0;
  let stopping = false;
  const before = { ...load.messages };
  /** The latest that each has heard of each. */
  const heard = new Map<Call, Map<string, number>>(calls.map((call) => [call, new Map()]));
  for (const call of calls) call.on('message', ({ from, data }) => heard.get(call)!.set(from, data as number));
  const speakers = calls.map(async (call) => {
    while (!stopping) {
      await load.say(call, (said += 1));
      await delay(500);
    }
  });
  return {
    /** Resolves once each has heard something of each of the others that was said from now on. */
    async everybodyIsHeard() {
      const from = said;
      await eventually(
        () =>
          groups.every((group) =>
            group.every((listener) =>
              group.every(
                (speaker) =>
                  listener === speaker || (heard.get(listener)!.get(speaker.participant.participantId) ?? 0) > from,
              ),
            ),
          ),
        { timeoutMs: 20_000 },
      );
    },
    async stop() {
      stopping = true;
      await Promise.all(speakers);
      return { sent: load.messages.sent - before.sent, refused: load.messages.refused - before.refused };
    },
  };
}
