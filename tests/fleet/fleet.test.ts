import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { checkInvariants } from '@callplane/db';
import { eventually } from '@callplane/testing';
import type { WebhookEvent } from '@callplane/webhook-verifier';
import { measured } from '../faults/faults.testkit.js';
import type { Receiver } from '../faults/webhooks.testkit.js';
import { LEASE_MS, proxiedBy, servesAgain, startFleet, type Fleet } from './fleet.testkit.js';
import { Load } from './load.testkit.js';
import {
  disturbInTurn,
  growthOf,
  mistreat,
  watchMemory,
  type Blow,
  type Disturbance,
  type Member,
} from './members.testkit.js';

/**
 * Runs the whole fleet on one machine under mixed load while every process is killed, frozen and restarted, including
 * PostgreSQL, Redis and Janus. It takes 40 s by default. A longer run shows whether memory grows:
 * `FLEET_SECONDS=600 npm test -- --testPathPatterns=tests/fleet/fleet`
 */
const SECONDS = Number(process.env['FLEET_SECONDS'] ?? 40);
/** The remaining time shows that all work completes. */
const DISTURBED_MS = SECONDS * 800;
const PLACES = 3;
/** In a short run, growth is mostly start-up: compiled code, pools, buffers. */
const GROWTH_MB_MAX = SECONDS < 300 ? 64 : 40;

let fleet: Fleet;
let slow: Receiver;
let load: Load;
/** Disturbances of PostgreSQL, Redis and Janus. */
const away: Disturbance[] = [];
/** How long an app may take to notice that PostgreSQL is back. */
const BACK_WITHIN_MS = 10_000;

beforeAll(async () => {
  fleet = await startFleet({ apis: 2, gateways: 2, cleaners: 2, senders: 4 });
  slow = await fleet.addReceiver();
  // Responses are slow for three seconds of every ten.
  slow.answer = () => (Date.now() % 10_000 < 3000 ? delay(400, 200) : 200);
  load = new Load({ url: fleet.nginx.url, key: fleet.stack.tenant.key });
});
afterAll(() => load.close());

test(
  'loses no accepted work, leaves none stuck and disconnects no participant, whichever process failed',
  async () => {
    const { nginx, stack, members } = fleet;
    const stopWatching = watchMemory(members);
    const longCall = await stay();
    const running = load.start(PLACES);
    const until = Date.now() + DISTURBED_MS;
    const endsAt = Date.now() + SECONDS * 1000;
    const everyMs = (count: number) => DISTURBED_MS / (count * 3);
    const inTurn = (lane: Member[], calm: (member: Member) => Promise<unknown> = () => Promise.resolve()) =>
      disturbInTurn(lane, { everyMs: everyMs(lane.length), until, calm });
    const again = (member: Member) => servesAgain(nginx, member);
    await Promise.all([
      inTurn(fleet.apis, again),
      inTurn(fleet.gateways, again),
      inTurn(fleet.cleaners),
      inTurn(fleet.senders),
      disturbServers(until),
    ]);
    await delay(Math.max(0, endsAt - Date.now()));
    load.stop();
    await running;
    const calledMs = Date.now();
    expect(load.failures).toEqual([]);
    await longCall.end();

    // All work completes without intervention.
    const { prisma } = stack.database;
    const settling = { timeoutMs: 90_000, intervalMs: 200 };
    const unsettled = () => prisma.runtimeOperation.count({ where: { status: { not: 'completed' } } });
    await eventually(async () => (await unsettled()) === 0, settling);
    await stack.allDelivered(90_000);
    const settledMs = Date.now() - calledMs;
    stopWatching();

    const disturbances = members.flatMap((member) => member.disturbances);
    const counts = countBy([...disturbances, ...away], ({ kind, blow }) => `${kind} ${blow}`);
    const growth = growthOf(members, SECONDS * 250).sort((a, b) => b.mb - a.mb);
    measured({
      seconds: SECONDS,
      requests: load.requests,
      rooms: load.rooms.length,
      sessions: load.sessionIds.size,
      resumed: load.resumed,
      messages: load.messages.sent,
      refused: load.messages.refused,
      received: load.messages.received,
      deliveries: await prisma.webhookDelivery.count(),
      'deliveries received': fleet.receiver.requests.length + slow.requests.length,
      'ms to settle': settledMs,
      statuses: JSON.stringify([...load.statuses]),
      disturbances: JSON.stringify(counts),
      'MiB grown at most': growth[0] === undefined ? '-' : `${Math.round(growth[0].mb)} (${growth[0].name})`,
    });

    // Each kind of process was killed, frozen and restarted.
    for (const kind of new Set(members.map((member) => member.kind))) {
      for (const blow of ['killed', 'frozen', 'restarted']) expect(counts).toHaveProperty([`${kind} ${blow}`]);
    }
    // Ten in a minute at least, although a slow machine manages a fraction of what an idle one does.
    expect(load.rooms.length).toBeGreaterThan(SECONDS / 6);
    expect(await prisma.room.count({ where: { status: { not: 'ended' } } })).toBe(0);
    expect(await prisma.participantSession.count({ where: { endedAt: null } })).toBe(0);
    await assertEveryEventIsDelivered();
    expect((await checkInvariants(stack.database, 10_000)).filter(({ broken }) => broken > 0)).toEqual([]);
    expect(inexcusable(disturbances)).toEqual([]);
    await noLeaseLostWithoutCause();
    for (const receiver of [fleet.receiver, slow]) receiver.check();
    for (const { name, mb } of growth) expect({ name, flat: mb < GROWTH_MB_MAX }).toEqual({ name, flat: true });
  },
  SECONDS * 1000 + 240_000,
);

async function disturbServers(until: number): Promise<void> {
  const { postgres, janus, stack } = fleet;
  const steps = [
    () => mistreat('redis', stack.redis, 'frozen'),
    () => mistreat('postgres', postgres, 'frozen'),
    () => mistreat('janus', janus, 'killed'),
    () => mistreat('redis', stack.redis, 'killed'),
    () => mistreat('postgres', postgres, 'restarted'),
    () => mistreat('janus', janus, 'frozen'),
  ];
  const everyMs = (until - Date.now()) / steps.length;
  for (const step of steps) {
    const startedAt = Date.now();
    // Disturbs in the middle of the interval, so that the first calls are undisturbed.
    await delay(everyMs / 2);
    away.push(await step());
    await delay(Math.max(0, startedAt + everyMs - Date.now()));
  }
}

/** A call that lasts for the whole test: three participants who talk in a room that stays open until `end`. */
async function stay() {
  const roomId = await load.newRoom();
  const people = await Promise.all(['Ada', 'Bob', 'Cem'].map((name) => load.join(roomId, name)));
  const ids = people.map(({ participant }) => participant.participantId).sort();
  const talk = { over: false };
  const talking = (async () => {
    for (let n = 0; !talk.over; n += 1) {
      await load.say(people[n % people.length]!, { n });
      await delay(500);
    }
  })();
  return {
    /** Asserts that all participants are still connected in their original sessions. */
    async end() {
      talk.over = true;
      await talking;
      expect(people.map(({ state }) => state)).toEqual(['connected', 'connected', 'connected']);
      for (const { participant, participants } of people) {
        expect([participant.participantId, ...participants.keys()].sort()).toEqual(ids);
      }
      const events = await fleet.stack.database.prisma.event.findMany({ where: { roomId } });
      expect(countBy(events, ({ type }) => type)).toEqual({
        'room.created': 1,
        'room.started': 1,
        'participant.joined': 3,
      });
      await load.insist('DELETE', `/v1/rooms/${roomId}`);
    },
  };
}

/**
 * Asserts that the healthy receiver has every event of every accepted room, and that each session joined once and left
 * once.
 */
async function assertEveryEventIsDelivered(): Promise<void> {
  const { prisma } = fleet.stack.database;
  const received = new Map(fleet.receiver.requests.map(({ event }) => [event.id, event]));
  const byRoom = new Map(load.rooms.map((roomId) => [roomId, [] as WebhookEvent[]]));
  for (const event of received.values()) byRoom.get((event.data['room'] as { id: string }).id)?.push(event);
  const ended = new Map<string, number>();
  for (const roomId of load.rooms) {
    const events = byRoom.get(roomId)!.sort((a, b) => a.sequence! - b.sequence!);
    expect({ roomId, sequences: events.map(({ sequence }) => sequence) }).toEqual({
      roomId,
      sequences: events.map((_, index) => index + 1),
    });
    expect({ roomId, first: events[0]?.type, last: events.at(-1)?.type }).toEqual({
      roomId,
      first: 'room.created',
      last: 'room.ended',
    });
    for (const { type, data } of events) {
      if (!type.startsWith('participant.')) continue;
      const key = `${String(data['sessionId'])} ${type}`;
      ended.set(key, (ended.get(key) ?? 0) + 1);
    }
  }
  const sessions = await prisma.participantSession.findMany({ select: { id: true, endReason: true } });
  const expected = sessions.flatMap(({ id }) => [`${id} participant.joined`, `${id} participant.left`]);
  expect([...ended.keys()].sort()).toEqual(expected.sort());
  expect([...ended.values()].filter((count) => count !== 1)).toEqual([]);
  expect(await prisma.event.count()).toBe(received.size);
  measured({ ends: JSON.stringify(countBy(sessions, ({ endReason }) => endReason ?? 'none')) });
  // Every client resumed within the grace, whichever disturbance its gateway had. A session without a welcome is lost at
  // once, or superseded, because its client joins again.
  const welcomed = sessions.filter(({ id }) => load.sessionIds.has(id));
  expect(welcomed).toHaveLength(load.sessionIds.size);
  expect(welcomed.filter(({ endReason }) => ['connection_lost', 'superseded'].includes(endReason!))).toEqual([]);
  const unwelcomed = sessions.filter(({ id }) => !load.sessionIds.has(id));
  expect(unwelcomed.filter(({ endReason }) => !['connection_lost', 'superseded'].includes(endReason!))).toEqual([]);
  // A delivery may arrive again only for an attempt that did not succeed: its worker died, froze, or got no response.
  const failed = await prisma.webhookAttempt.findMany({ where: { outcome: { not: 'success' } } });
  const excused = countBy(failed, ({ deliveryId }) => deliveryId);
  for (const { requests } of [fleet.receiver, slow]) {
    const counts = countBy(requests, ({ deliveryId }) => deliveryId);
    const tooOften = Object.entries(counts).filter(([id, count]) => count > 1 + (excused[id] ?? 0));
    expect(tooOften).toEqual([]);
  }
}

/**
 * Responses with status 500 or above that no disturbance explains. 503 means that PostgreSQL did not answer. 502 means
 * that a killed instance had the request. Neither a frozen instance nor a graceful restart explains any error.
 */
function inexcusable(disturbances: readonly Disturbance[]) {
  const database = away.filter(({ kind }) => kind === 'postgres');
  return proxiedBy(fleet.nginx).filter(({ status, atMs, durationMs, asked }) => {
    if (status < 500) return false;
    const during = ({ from, until }: Disturbance) => atMs + 1000 >= from && atMs - durationMs <= until + BACK_WITHIN_MS;
    if (status === 503) return !database.some(during);
    const killed = disturbances.filter(({ blow, port }) => blow === 'killed' && asked.includes(port));
    return !(status === 502 && killed.some(during));
  });
}

/** Asserts that each lease that expired was held while a worker was killed or frozen, or could not write its result. */
async function noLeaseLostWithoutCause(): Promise<void> {
  const blowsTo = (members: readonly Member[], blows: readonly Blow[]) =>
    members.flatMap((member) => member.disturbances).filter(({ blow }) => blows.includes(blow));
  const lost = await fleet.stack.database.prisma.webhookAttempt.findMany({ where: { errorCode: 'LEASE_EXPIRED' } });
  const database = away.filter(({ kind }) => kind === 'postgres');
  const causes = [...blowsTo(fleet.senders, ['killed', 'frozen']), ...database];
  const without = lost.filter(({ startedAt }) => {
    const begun = startedAt.getTime();
    return !causes.some(({ from, until }) => begun <= Math.min(until, from + LEASE_MS) && begun + LEASE_MS >= from);
  });
  const killed = blowsTo(fleet.senders, ['killed']).length;
  measured({ 'leases lost': lost.length, 'webhook workers killed': killed });
  expect(without).toEqual([]);
  // A worker runs four deliveries and has four more claimed.
  expect(lost.length).toBeLessThanOrEqual((causes.length + database.length * 3) * 8);
  for (const cleaner of fleet.cleaners) {
    const frozen = [...blowsTo([cleaner], ['frozen']), ...database];
    const unexplained = cleaner.processes
      .flatMap(({ logs }) => logs.filter(({ outcome }) => outcome === 'lease_lost'))
      .map(({ time }) => Date.parse(String(time)))
      .filter((at) => !frozen.some(({ from, until }) => from <= at && at <= until + LEASE_MS));
    expect({ name: cleaner.name, unexplained }).toEqual({ name: cleaner.name, unexplained: [] });
  }
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) counts[keyOf(item)] = (counts[keyOf(item)] ?? 0) + 1;
  return counts;
}
