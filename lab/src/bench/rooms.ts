/**
 * The benchmark of rooms: three gateways without media servers, and clients in processes of their own. Environment:
 * `BENCH_SIZES` (default `3000,10000`), the sizes of the room; the largest one is the crowd. Each size needs one
 * connection a client. `BENCH_FILLS` (default 1): how many rooms the crowd fills, one after the other.
 * `BENCH_ROOMS` (default 2000): rooms of five whose gateways are killed and drained.
 */
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import { Failure } from '../bootstrap.js';
import { signalingUrlOf } from '../client.js';
import { cpuMs, memoryKiB, onStage, type Stage } from '../fleet/stage.js';
import { openCrowd, type Crowd, type Ticket } from './rooms-crowd.js';
import { percentile, printHead, printRow, spread } from './figures.js';
import { messagesPerSecond } from './messages.js';
import { openClient } from './signaling-client.js';

const SIZES = (process.env.BENCH_SIZES ?? '3000,10000').split(',').map(Number);
const CROWD = Math.max(...SIZES);
const JOINS = Number(process.env.BENCH_JOINS ?? 500);
const JOINS_PER_SECOND = 100;
/** How many clients of one process may be joining while a room fills. */
const AT_ONCE = 100;
const FILLS = Number(process.env.BENCH_FILLS ?? 1);
const SMALL = { rooms: 100, participants: 10 };
const MANY = { rooms: Number(process.env.BENCH_ROOMS ?? 2_000), participants: 5 };
const LATENCY = { rooms: 20, participants: 5, joins: 300 };
const CHANGES = { writers: 30, readers: 40, each: Number(process.env.BENCH_CHANGES ?? 20), perSecond: 20 };
const IDLE_MS = 5_000;
const FILES_MIN = 12_000;
const GATEWAYS = Number(process.env.BENCH_GATEWAYS ?? 3);
const PERMISSIONS = ['room:join', 'messages:send', 'metadata:update'];

type Fleet = Awaited<ReturnType<typeof openFleet>>;
type Gateway = Fleet['gateways'][number];
/** A participant token, not yet for one of the gateways. */
type Token = Omit<Ticket, 'url'>;

export async function run() {
  const files = Number(/Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
  if (files < FILES_MIN) throw new Failure(`Too few open files (${files}); run "ulimit -n ${FILES_MIN}" first`);
  await onStage(async (stage) => {
    const crowd = openCrowd();
    stage.onClose(async () => crowd.close());
    const fleet = await openFleet(stage);
    printHead('what', 'value', 'load');
    await joinLatency(fleet, crowd);
    await messages(fleet);
    const small = await joinsIntoSmallRooms(fleet, crowd);
    const room = await fleet.newRoom(2 * CROWD + JOINS);
    const tickets = await ticketsOf(fleet, [room], CROWD + JOINS);
    for (const size of SIZES) {
      // The memory of viewers counts from gateways that have served nobody.
      if (size === CROWD) await fleet.restart();
      await fill(fleet, crowd, tickets.slice(0, size), size === CROWD ? 'memory' : undefined);
      if (size === Math.min(...SIZES)) await metadata(fleet, crowd, size);
      await joinsIntoRoom(fleet, crowd, tickets, size, small);
      if (size === CROWD) {
        await resumeAfterKill(fleet, crowd, 0, countAt(fleet, tickets.slice(0, size), 0));
      }
      await crowd.leaveAll();
    }
    await fill(fleet, crowd, tickets.slice(0, CROWD), undefined, 1);
    await resumeAfterKill(fleet, crowd, 1, CROWD);
    await crowd.leaveAll();
    for (let again = 1; again < FILLS; again += 1) {
      const next = await ticketsOf(fleet, [await fleet.newRoom(CROWD)], CROWD);
      await fill(fleet, crowd, next, 'pace');
      await crowd.leaveAll();
    }
    await manyRooms(fleet, crowd);
  });
}

/** The API, the cleanup worker and gateways without media servers. */
async function openFleet(stage: Stage) {
  const startGateway = async () => {
    const gateway = await stage.start('signaling');
    return { ...gateway, url: signalingUrlOf(gateway.origin) };
  };
  const [api, cleanup] = [await stage.start('api'), await stage.start('cleanup-worker')];
  const gateways = await Promise.all(Array.from({ length: GATEWAYS }, startGateway));
  const client = stage.clientOf(api);
  const killed = new Set<number>();
  const kill = (index: number, signal: NodeJS.Signals = 'SIGKILL') => {
    const { pid } = gateways[index] as Gateway;
    killed.add(pid);
    process.kill(pid, signal);
  };
  const replace = async (index: number) => void (gateways[index] = await startGateway());
  return {
    gateways,
    kill,
    replace,
    restart: async () => {
      for (const index of gateways.keys()) {
        kill(index);
        await replace(index);
      }
    },
    newRoom: (maxParticipants: number) => client.newRoom({ maxParticipants }),
    token: (room: string, name: string) => client.newToken(room, name, PERMISSIONS),
    gatewaysCpuMs: () => gateways.reduce((sum, { pid }) => sum + cpuMs(pid), 0),
    gatewaysRssKiB: () => gateways.reduce((sum, { pid }) => sum + memoryKiB(pid, 'VmRSS'), 0),
    /** The largest resident memory that a process of the fleet ever had, in KiB. */
    highestKiB: () =>
      Math.max(
        ...[api, cleanup, ...gateways].filter(({ pid }) => !killed.has(pid)).map(({ pid }) => memoryKiB(pid, 'VmHWM')),
      ),
  };
}

/** @param count the participants take turns with the rooms */
function ticketsOf(fleet: Fleet, rooms: string[], count: number) {
  return pLimit(16).map(Array.from({ length: count }), async (_, index) => {
    const token = await fleet.token(String(rooms[index % rooms.length]), `client ${index}`);
    return { key: index, token };
  });
}

/** Spreads the tickets over the gateways, or gives all to one. */
function at({ gateways }: Fleet, tickets: Token[], gateway?: number) {
  return tickets.map((ticket) => ({
    ...ticket,
    // Neighbours are in different client processes, so pairs go to one gateway.
    url: (gateways[gateway ?? (ticket.key >> 1) % gateways.length] as Gateway).url,
  }));
}

/** How many of the tickets are for this gateway. */
function countAt(fleet: Fleet, tickets: Token[], index: number): number {
  return at(fleet, tickets).filter(({ url }) => url === fleet.gateways[index]?.url).length;
}

/** @param measure the pace of the joins, or the memory of fresh gateways as well */
async function fill(fleet: Fleet, crowd: Crowd, tickets: Token[], measure?: 'pace' | 'memory', gateway?: number) {
  const rssBefore = fleet.gatewaysRssKiB();
  const began = performance.now();
  const { tookMs, retries, failures } = await crowd.join(at(fleet, tickets, gateway), { atOnce: AT_ONCE });
  const seconds = (performance.now() - began) / 1_000;
  expectNone(`joins while the room fills`, failures);
  if (measure === undefined) return;
  const rate = `${(tickets.length / seconds).toFixed(0)} joins/s, ${seconds.toFixed(1)} s in all`;
  row(`${tickets.length} joined in one room`, `${rate}; ${spread(tookMs)}${repeated(retries)}`);
  if (measure === 'pace') return;
  await delay(10_000);
  const each = (fleet.gatewaysRssKiB() - rssBefore) / tickets.length;
  row(`resident memory of a viewer, of ${tickets.length}`, `${each.toFixed(1)} KiB`);
}

async function joinLatency(fleet: Fleet, crowd: Crowd) {
  const rooms = await pLimit(8).map(Array.from({ length: LATENCY.rooms }), () => fleet.newRoom(100));
  const present = LATENCY.rooms * LATENCY.participants;
  const tickets = await ticketsOf(fleet, rooms, present + 2 * LATENCY.joins);
  expectNone('joins', (await crowd.join(at(fleet, tickets.slice(0, present)), { atOnce: 10 })).failures);
  const tookMs = [];
  for (const ticket of at(fleet, tickets.slice(present, present + LATENCY.joins))) {
    const joined = await crowd.join([ticket], { atOnce: 1 });
    expectNone('joins', joined.failures);
    tookMs.push(...joined.tookMs);
    await crowd.leave([ticket.key]);
  }
  row(`token to welcome, rooms of ${LATENCY.participants}`, spread(tookMs));
  const openMs = [];
  for (const { url, token } of at(fleet, tickets.slice(present + LATENCY.joins))) {
    const client = await openClient(url);
    const began = performance.now();
    await client.enter({ type: 'join', token, autoSubscribe: false });
    openMs.push(performance.now() - began);
    client.send({ type: 'leave' });
    await client.closed;
  }
  row('the same, over an open connection', spread(openMs));
  await crowd.leaveAll();
}

async function messages(fleet: Fleet) {
  const room = await fleet.newRoom(100);
  const gateway = fleet.gateways[0] as Gateway;
  for (const [what, value] of await messagesPerSecond(gateway, (name) => fleet.token(room, name))) row(what, value);
}

async function joinsIntoSmallRooms(fleet: Fleet, crowd: Crowd) {
  const rooms = await pLimit(8).map(Array.from({ length: SMALL.rooms }), () => fleet.newRoom(100));
  const present = SMALL.rooms * SMALL.participants;
  const tickets = await ticketsOf(fleet, rooms, present + JOINS);
  expectNone('joins', (await crowd.join(at(fleet, tickets.slice(0, present)), { atOnce: AT_ONCE })).failures);
  const { cpuMs, tookMs, retries } = await pacedJoins(fleet, crowd, tickets.slice(present));
  row(
    `gateway CPU of a join into a room of ${SMALL.participants}`,
    `${cpuMs.toFixed(2)} ms; ${spread(tookMs)}${repeated(retries)}`,
  );
  await crowd.leaveAll();
  return cpuMs;
}

async function joinsIntoRoom(fleet: Fleet, crowd: Crowd, tickets: Token[], size: number, smallMs: number) {
  await crowd.forgetReceived();
  const joining = tickets.slice(size, size + JOINS);
  const { cpuMs, tookMs, retries, received } = await pacedJoins(fleet, crowd, joining);
  const ratio = ` (${(cpuMs / smallMs).toFixed(2)} of a small room's)`;
  row(`gateway CPU of a join at ${size}`, `${cpuMs.toFixed(2)} ms${ratio}; ${spread(tookMs)}${repeated(retries)}`);
  const count = ((received.viewerCount ?? 0) / size).toFixed(0);
  row(`bytes to the ${size} others for each join`, `${bytesOf(received, joining.length)}; the count ${count} for each`);
  await crowd.leave(joining.map(({ key }) => key));
}

/** Joins at a steady pace, and their cost at the gateways beyond the idle rate. */
async function pacedJoins(fleet: Fleet, crowd: Crowd, tickets: Token[]) {
  const { result, cpuMs } = await costing(fleet, async () => {
    await crowd.forgetReceived();
    const joining = at(fleet, tickets).map((ticket) => ({ ...ticket, group: 'joining' }));
    const joined = await crowd.join(joining, { perSecond: JOINS_PER_SECOND });
    // The last change and the last count are still on their way.
    await delay(1_500);
    return { ...joined, received: await crowd.received('all') };
  });
  expectNone('joins', result.failures);
  return { ...result, cpuMs: cpuMs / tickets.length };
}

/** Changes of metadata, some of which are shown by one client each. */
async function metadata(fleet: Fleet, crowd: Crowd, size: number) {
  const { writers, readers, perSecond } = CHANGES;
  const keys = Array.from({ length: writers }, (_, index) => index);
  const showing = Array.from({ length: readers }, (_, index) => size - 1 - index);
  const change = (key: number, value: number) => crowd.send(key, { type: 'metadata', metadata: { hand: value } });
  // From now on, the writers are not viewers.
  for (const key of keys) await change(key, 0);
  await crowd.group('showing', showing);
  for (const [index, key] of showing.entries()) {
    const shown = await crowd.participantId(index % writers);
    await crowd.send(key, { type: 'show', participantIds: [shown], publishers: false });
  }
  await delay(3_000);
  const count = writers * CHANGES.each;
  const { result, cpuMs } = await costing(fleet, async () => {
    await crowd.forgetReceived();
    const began = performance.now();
    for (let index = 0; index < count; index++) {
      await change(index % writers, index + 1);
      await delay(Math.max(0, began + ((index + 1) * 1_000) / perSecond - performance.now()));
    }
    await delay(1_500);
    return { showing: await crowd.received('showing'), others: await crowd.received('all') };
  });
  row(`gateway CPU of a metadata change at ${size}`, `${(cpuMs / count).toFixed(2)} ms`);
  row(
    `bytes for each change: to the ${readers} that show one of ${writers}; to all others`,
    `${bytesOf(result.showing, count)}; ${bytesOf(result.others, count)}`,
  );
}

/** A gateway is killed, and another one stops, while each has a third of the clients of many rooms. */
async function manyRooms(fleet: Fleet, crowd: Crowd) {
  const rooms = await pLimit(16).map(Array.from({ length: MANY.rooms }), () => fleet.newRoom(100));
  const tickets = await ticketsOf(fleet, rooms, MANY.rooms * MANY.participants);
  await fill(fleet, crowd, tickets);
  row(`${MANY.rooms} rooms of ${MANY.participants}`, `${tickets.length} clients`);
  await resumeAfterKill(fleet, crowd, 0, countAt(fleet, tickets, 0), 'SIGKILL');
  await crowd.leaveAll();
  await fill(fleet, crowd, tickets);
  await resumeAfterKill(fleet, crowd, 1, countAt(fleet, tickets, 1), 'SIGTERM');
  await crowd.leaveAll();
}

/**
 * @param index of the gateway to stop
 * @param expected clients that it has
 */
async function resumeAfterKill(
  fleet: Fleet,
  crowd: Crowd,
  index: number,
  expected: number,
  signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL',
) {
  const { gateways } = fleet;
  const killed = gateways[index] as Gateway;
  await crowd.resumeAt(gateways.filter((one) => one !== killed).map(({ url }) => url));
  const killedAt = Date.now();
  fleet.kill(index, signal);
  let last = await crowd.resumptions();
  const settled = () => last.welcomesAt.length + (last.ends['gave up'] ?? 0) + (last.ends.invalid_session ?? 0);
  while (Date.now() - killedAt < 60_000 && settled() < expected) {
    await delay(500);
    last = await crowd.resumptions();
  }
  const { welcomesAt, attempts, ends } = last;
  const tookS = welcomesAt.map((welcomeAt) => (welcomeAt - killedAt) / 1_000);
  const seconds = [0.5, 0.99, 1].map((share) => percentile(tookS, share).toFixed(1));
  const problems = Object.entries(ends).map(([reason, count]) => `${reason} ${count}`);
  row(
    `${expected} resume after ${signal} to their gateway`,
    `${welcomesAt.length} are back; median ${seconds[0]} s, p99 ${seconds[1]} s, last ${seconds[2]} s; ` +
      `${attempts} attempts${problems.length === 0 ? '' : ` (${problems.join(', ')})`}`,
  );
  row('most memory of a process so far', `${(fleet.highestKiB() / 1024).toFixed(0)} MiB`);
  await fleet.replace(index);
}

/** CPU time of all gateways during `work`, minus their idle rate. */
async function costing<T>(fleet: Fleet, work: () => Promise<T>) {
  await delay(2_000);
  const idle = await timed(fleet, () => delay(IDLE_MS));
  const busy = await timed(fleet, work);
  return { result: busy.result, cpuMs: busy.cpuMs - (idle.cpuMs / idle.tookMs) * busy.tookMs };
}

async function timed<T>(fleet: Fleet, work: () => Promise<T>) {
  const [cpuMs, began] = [fleet.gatewaysCpuMs(), performance.now()];
  const result = await work();
  return { result, cpuMs: fleet.gatewaysCpuMs() - cpuMs, tookMs: performance.now() - began };
}

/** @param failures by reason */
function expectNone(what: string, failures: Record<string, number>) {
  if (Object.keys(failures).length > 0) throw new Error(`Failed ${what}: ${JSON.stringify(failures)}`);
}

/** The note of a row about repeated attempts, by reason. The machine was too busy for the pace then. */
function repeated(retries: Record<string, number>) {
  const parts = Object.entries(retries).map(([reason, count]) => `${reason} ${count}`);
  return parts.length === 0 ? '' : `; repeated: ${parts.join(', ')}`;
}

/** Bytes for each of `count` causes, without bytes of other causes. */
function bytesOf(received: Record<string, number>, count: number) {
  const caused = Object.entries(received).filter(([type]) => type !== 'pong' && type !== 'viewerCount');
  const sum = caused.reduce((bytes, [, more]) => bytes + more, 0);
  const types = caused.map(([type, bytes]) => `${type} ${(bytes / count).toFixed(0)}`);
  return `${(sum / count).toFixed(0)}${types.length > 1 ? ` (${types.join(', ')})` : ''}`;
}

function row(what: string, value: string) {
  printRow(what, value, (loadavg()[0] ?? NaN).toFixed(1));
}
