import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { connect, type Call } from '@callplane/client-js';
import type { TypedSql } from '@callplane/db';
import { eventually, startTcpProxy, stopAtEnd, type TestApp } from '@callplane/testing';
import { WebSocket } from 'ws';
import { startStack, type Stack } from '../faults/faults.testkit.js';

/**
 * Sends SIGTERM to a gateway while participants join through it, or aborts their `connect()`, at each point of a join;
 * a lock in PostgreSQL holds the joins there.
 */

let stack: Stack;
let api: TestApp;
/** The gateway that new connections reach after the drain began. */
let other: TestApp;
/** Ends the joins of a test that has failed: the SDK cannot load code after the test file. */
const over = new AbortController();
beforeAll(async () => {
  stack = await startStack();
  [api, other] = await Promise.all([stack.spawnApi(), stack.spawnSignaling()]);
});
afterAll(() => over.abort());

interface Point {
  name: string;
  /** Takes a lock in another transaction, so that the joins wait. */
  hold(tx: TypedSql, at: { roomId: string; participantIds: string[] }): PromiseLike<unknown>;
  /** Whether somebody is in the room before, at another gateway. */
  hasGuest?: true;
  /** Whether the joins have reached this point. */
  isReached(at: { roomId: string; gateway: TestApp; joins: number }): Promise<boolean>;
}

/**
 * Whether the gateway has got all joins, and at least one waits for the lock. Those that came after the begin of its batch
 * wait in the gateway's memory.
 */
const haveArrived: Point['isReached'] = async ({ gateway, joins }) => {
  const metrics = await (await fetch(gateway.metricsUrl)).text();
  const [, count] = /^callplane_signaling_messages_total\{type="join".*\} (\d+)$/m.exec(metrics) ?? [];
  return Number(count) === joins && (await lockWaiters()) >= 1;
};

const POINTS: Point[] = [
  {
    name: 'before its token is verified',
    hold: (tx) => tx.$queryRaw`LOCK TABLE signing_keys IN ACCESS EXCLUSIVE MODE`,
    isReached: haveArrived,
  },
  {
    name: 'before it is admitted',
    hold: (tx, { participantIds }) =>
      tx.$queryRaw`SELECT 1 FROM participants WHERE id = ANY(${participantIds}::text[]) FOR UPDATE`,
    isReached: haveArrived,
  },
  {
    name: 'inside the transaction of its batch, or waiting for the next batch of the room',
    hold: (tx, { roomId }) => tx.$queryRaw`SELECT 1 FROM rooms WHERE id = ${roomId} FOR UPDATE`,
    isReached: haveArrived,
  },
  {
    name: 'after its commit, before the welcome',
    // The gateway reads the room, because it does not know the guest.
    hasGuest: true,
    hold: (tx) => tx.$queryRaw`LOCK TABLE session_tracks IN ACCESS EXCLUSIVE MODE`,
    isReached: async ({ roomId, joins }) => {
      const joined = await stack.database.prisma.participantSession.count({ where: { roomId } });
      return joined === joins + 1 && (await lockWaiters()) >= 1;
    },
  },
];

test.each(POINTS)(
  'after SIGTERM while a join is $name, everybody is in the call and has joined once',
  async (point) => {
    await drainAt(point, { heldMs: 300, withStuckJoin: false });
  },
);

test('joins that hang inside their transactions for longer than a drain waits write nothing after SIGTERM', async () => {
  await drainAt(POINTS[2]!, { heldMs: 4000, withStuckJoin: true });
});

describe('an aborted connect()', () => {
  test.each(POINTS)('while its join is $name leaves nobody in the room', async (point) => {
    const gateway = await stack.spawnSignaling();
    const url = urlOf(gateway);
    const roomId = await stack.newRoom(api);
    if (point.hasGuest) await join(urlOf(other), (await tokenFor(roomId)).token);
    const { token, participantId } = await tokenFor(roomId);
    const abort = new AbortController();
    await stack.database.transaction(async (tx) => {
      await point.hold(tx, { roomId, participantIds: [participantId] });
      const joining = connect({ url, token, signal: abort.signal, platform: { WebSocket } });
      const aborted = expect(joining).rejects.toMatchObject({ code: 'aborted' });
      await eventually(() => point.isReached({ roomId, gateway, joins: 1 }), { intervalMs: 50 });
      abort.abort();
      await aborted;
    });
    await eventually(async () => (await openConnections(gateway)) === 0);
    await eventually(async () => (await sessionsOf(roomId)).length === (point.hasGuest ? 1 : 0));
    // A session that outlives its connection ends with `connection_lost`, after the grace period.
    const sessions = await stack.database.prisma.participantSession.findMany({ where: { roomId, participantId } });
    expect(sessions.filter(({ endReason }) => endReason !== 'left')).toEqual([]);
    expect(gateway.logs.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('does not disturb the next one with the same token, as React calls them in development', async () => {
    const gateway = await stack.spawnSignaling();
    const url = urlOf(gateway);
    const roomId = await stack.newRoom(api);
    const { token } = await tokenFor(roomId);
    const abort = new AbortController();
    /** Aborts as soon as the join is under way. */
    class AbortingSocket extends WebSocket {
      override send(data: string): void {
        super.send(data);
        abort.abort();
      }
    }
    const first = connect({ url, token, signal: abort.signal, platform: { WebSocket: AbortingSocket } });
    await expect(first).rejects.toMatchObject({ code: 'aborted' });
    const call = await join(url, token);
    await eventually(async () => (await openConnections(gateway)) === 1);
    expect((await sessionsOf(roomId)).map(({ id }) => id)).toEqual([call.sessionId]);
    expect(call.state).toBe('connected');
  });
});

/**
 * @param how.heldMs how long the joins are held after the signal.
 * @param how.withStuckJoin whether the client that keeps the old gateway alive joins as well. The gateway waits 2 s for
 * the close handshake of a client that does not read. Without its join, the gateway is still alive when the held joins
 * continue; with it, the drain first reaches its bound.
 */
async function drainAt(point: Point, how: { heldMs: number; withStuckJoin: boolean }): Promise<void> {
  const gateway = await stack.spawnSignaling();
  const targets = [portOf(gateway)];
  const balancer = await startTcpProxy(targets);
  const roomId = await stack.newRoom(api);
  const tokens = await Promise.all(Array.from({ length: 4 }, () => tokenFor(roomId)));
  const participantIds = tokens.map(({ participantId }) => participantId);
  if (point.hasGuest) {
    const guest = await tokenFor(roomId);
    await join(urlOf(other), guest.token);
    participantIds.push(guest.participantId);
  }
  const stuck = await openStuck(gateway);
  const stuckToken = await tokenFor(roomId);

  let joining: Promise<Call>[] = [];
  await stack.database.transaction(async (tx) => {
    await point.hold(tx, { roomId, participantIds });
    joining = tokens.map(({ token }) => join(`ws://127.0.0.1:${balancer.port}/v1/signaling`, token));
    if (how.withStuckJoin) stuck.join(stuckToken.token);
    const joins = tokens.length + (how.withStuckJoin ? 1 : 0);
    await eventually(() => point.isReached({ roomId, gateway, joins }), { intervalMs: 50 });
    gateway.kill('SIGTERM');
    await gateway.waitForLog(({ message }) => message === 'process drains');
    targets[0] = portOf(other);
    await delay(how.heldMs);
  });

  const calls = await Promise.all(joining);
  expect(await gateway.exited).toEqual({ code: 0, signal: null });
  await eventually(async () => (await sessionsOf(roomId)).every(({ disconnectedAt }) => disconnectedAt === null));
  await eventually(() => calls.every(({ state }) => state === 'connected'));
  expect((await sessionsOf(roomId)).map(({ participantId }) => participantId).sort()).toEqual(
    [...participantIds].sort(),
  );
  expect(await eventTypes(roomId)).toEqual([
    'room.created',
    'room.started',
    ...participantIds.map(() => 'participant.joined'),
  ]);
  expect(gateway.logs.filter(({ level }) => level === 'error')).toEqual([]);
}

/** A connection whose client never reads, not even a close frame. */
async function openStuck(gateway: TestApp): Promise<{ join(token: string): void }> {
  const socket = new WebSocket(urlOf(gateway), 'callplane.v1');
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  socket.on('error', () => undefined);
  socket.pause();
  stopAtEnd(() => {
    socket.terminate();
    return Promise.resolve();
  });
  return { join: (token) => socket.send(JSON.stringify({ type: 'join', token })) };
}

const portOf = ({ url }: TestApp) => ({ host: '127.0.0.1', port: Number(new URL(url).port) });

const urlOf = (gateway: TestApp) => `${gateway.url.replace('http', 'ws')}/v1/signaling`;

async function tokenFor(roomId: string): Promise<{ token: string; participantId: string }> {
  const body = { participantName: 'Ada', permissions: ['room:join'] };
  const answer = await stack.call(api, 'POST', `/v1/rooms/${roomId}/tokens`, { body });
  return answer.body;
}

const sessionsOf = (roomId: string) =>
  stack.database.prisma.participantSession.findMany({ where: { roomId, endedAt: null } });

async function eventTypes(roomId: string): Promise<string[]> {
  const events = await stack.database.prisma.event.findMany({ where: { roomId }, orderBy: { sequence: 'asc' } });
  return events.map(({ type }) => type);
}

async function openConnections(gateway: TestApp): Promise<number> {
  const metrics = await (await fetch(gateway.metricsUrl)).text();
  return Number(/^callplane_signaling_connections(?:\{.*\})? (\d+)$/m.exec(metrics)?.[1]);
}

async function lockWaiters(): Promise<number> {
  const [row] = await stack.database.sql.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return row!.count;
}

function join(url: string, token: string): Promise<Call> {
  const joined = connect({ url, token, connectTimeoutMs: 30_000, signal: over.signal, platform: { WebSocket } });
  // A test that fails earlier does not await it.
  joined.then(
    (call) => stopAtEnd(() => call.leave()),
    () => undefined,
  );
  return joined;
}
