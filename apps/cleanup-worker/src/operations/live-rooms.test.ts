import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { claimOperation, markDisconnected, releaseSession } from '@callplane/db';
import { MediaNodes, type MediaNode } from '@callplane/media';
import { eventually, startTestJanus, stopAtEnd, type TestJanus } from '@callplane/testing';
import { MediaOrphans } from '../reconcile/media-orphans.js';
import { NOON, startTestWorker, type Entered, type TestWorker } from '../worker.testkit.js';
import { stepsOf } from './steps.js';
import { workOnOperation } from './work-on-operation.js';

let janus: TestJanus;
let worker: TestWorker;
let node: MediaNode;
beforeAll(async () => {
  janus = await startTestJanus();
  const { apiSecret, adminKey } = janus;
  const addresses = [
    { id: 'm1', url: janus.url },
    { id: 'nowhere', url: 'ws://127.0.0.1:9' },
  ];
  const media = MediaNodes.open({ addresses, apiSecret, adminKey, random: Math.random });
  stopAtEnd(() => media.close());
  worker = await startTestWorker({ media });
  node = media.get('m1')!;
});
beforeEach(async () => {
  worker.clock.set(NOON);
  await node.untilUp(10_000);
});

/** A room with people whose feeds are on the media server. */
async function liveRoom(people: number, mediaNodeId = 'm1'): Promise<{ roomId: string; entered: Entered[] }> {
  const roomId = await worker.newRoom('active');
  await node.ensureRoom(roomId);
  const entered: Entered[] = [];
  for (let n = 0; n < people; n += 1) {
    const one = await worker.enter(roomId, { mediaNodeId });
    await node.attachPublisher(roomId, one.feedId);
    entered.push(one);
  }
  return { roomId, entered };
}
/** The one line that tells of it; lines arrive a moment after they are written. */
const attemptOf = (operationId: string, attempt = 1) =>
  eventually(() =>
    worker.lines.find(
      (line) =>
        line.message === 'operation attempt' && line['operationId'] === operationId && line['attempt'] === attempt,
    ),
  );
const logged = (fields: Record<string, unknown>) =>
  eventually(() => worker.lines.find((line) => Object.entries(fields).every(([name, value]) => line[name] === value)));
const endReason = async (sessionId: string) =>
  (await worker.deps.database.prisma.participantSession.findUniqueOrThrow({ where: { id: sessionId } })).endReason;

test('a worker that has just started calls no media server down that it is still connecting to', async () => {
  const { apiSecret, adminKey, url } = janus;
  const addresses = [{ id: 'fresh', url }];
  const media = MediaNodes.open({ addresses, apiSecret, adminKey, random: Math.random });
  stopAtEnd(() => media.close());
  expect(media.get('fresh')?.state).toBe('down');
  await new MediaOrphans({ ...worker.deps, media }).pass();
  await logged({ message: 'media node state', mediaNodeId: 'fresh', state: 'up' });
  expect(worker.lines.filter(({ mediaNodeId, state }) => mediaNodeId === 'fresh' && state === 'down')).toEqual([]);
});

describe('room.end', () => {
  test('destroys the room on its media server, and everyone leaves once', async () => {
    const { roomId } = await liveRoom(2);
    const { operation } = await worker.endRoom(roomId);
    await workOnOperation(worker.deps, operation.id);
    expect(await node.hasRoom(roomId)).toBe(false);
    expect(await worker.row(operation.id)).toMatchObject({ status: 'completed', attempts: 1 });
    expect((await worker.events(roomId)).slice(4)).toEqual([
      'track.unpublished',
      'participant.left room_ended',
      'track.unpublished',
      'participant.left room_ended',
      'room.ended',
    ]);
    expect(await attemptOf(operation.id)).toMatchObject({ outcome: 'completed', media: 'destroyed', sessionsEnded: 2 });
  });

  test('of 100 who are publishing takes less than two seconds', async () => {
    const { roomId } = await liveRoom(100);
    const { operation } = await worker.endRoom(roomId);
    const startedAt = performance.now();
    await workOnOperation(worker.deps, operation.id);
    const ms = performance.now() - startedAt;
    process.stderr.write(`    measured: room.end of 100 ${Math.round(ms)} ms\n`);
    expect(ms).toBeLessThan(2000);
    expect(await node.hasRoom(roomId)).toBe(false);
    const events = await worker.events(roomId);
    expect(events.filter((event) => event === 'participant.left room_ended')).toHaveLength(100);
    expect(events.filter((event) => event === 'room.ended')).toHaveLength(1);
  }, 60_000);

  test('goes on without a media server that cannot be reached or is not known any more', async () => {
    for (const mediaNodeId of ['nowhere', 'unknown']) {
      const { roomId } = await liveRoom(1, mediaNodeId);
      const { operation } = await worker.endRoom(roomId);
      await workOnOperation(worker.deps, operation.id);
      expect(await attemptOf(operation.id)).toMatchObject({ outcome: 'completed', media: 'unreachable' });
      await logged({ message: 'media node unreachable', roomId, mediaNodeId });
      expect((await worker.events(roomId)).slice(-2)).toEqual(['participant.left room_ended', 'room.ended']);
    }
  });

  test('goes on when the media server is frozen; what it kept is destroyed as an orphan when it answers again', async () => {
    const { roomId } = await liveRoom(1);
    const { operation } = await worker.endRoom(roomId);
    const orphans = new MediaOrphans(worker.deps);
    janus.freeze();
    try {
      await workOnOperation(worker.deps, operation.id);
      expect(await attemptOf(operation.id)).toMatchObject({ outcome: 'completed', media: 'unreachable' });
      await eventually(() => node.state === 'down');
      await orphans.pass();
    } finally {
      janus.thaw();
    }
    await node.untilUp(10_000);
    // As a gateway would that had been frozen with it. (What was asked of Janus before may have reached it after all.)
    await node.ensureRoom(roomId);
    await orphans.pass();
    expect(await node.hasRoom(roomId)).toBe(false);
    await logged({ message: 'orphaned media room destroyed', roomId, mediaNodeId: 'm1', reason: 'ended' });
    for (const [mediaNodeId, state] of [
      ['m1', 'down'],
      ['m1', 'up'],
      ['nowhere', 'down'],
    ]) {
      await logged({ message: 'media node state', mediaNodeId, state });
    }
  }, 60_000);

  test('each step can be repeated after a worker died at any point between them', async () => {
    const steps = stepsOf('room.end');
    for (let died = 1; died < steps.length; died += 1) {
      const { roomId } = await liveRoom(2);
      const { id } = (await worker.endRoom(roomId)).operation;
      const claim = await claimOperation(worker.deps.database.prisma, id, randomUUID(), 60_000);
      for (const step of steps.slice(0, died)) await step.run(worker.deps, claim!, () => undefined);
      await worker.sql(
        `UPDATE runtime_operations SET lease_expires_at = now() - interval '1 second' WHERE id = '${id}'`,
      );
      await workOnOperation(worker.deps, id);
      expect(await worker.row(id)).toMatchObject({ status: 'completed', attempts: 2 });
      const events = await worker.events(roomId);
      expect(events.filter((event) => event.startsWith('participant.left'))).toHaveLength(2);
      expect(events.filter((event) => event === 'room.ended')).toHaveLength(1);
      expect(await node.hasRoom(roomId)).toBe(false);
    }
  });
});

describe('participant.remove', () => {
  test('stops what it publishes, waits until its instance has let go, and ends its session', async () => {
    const { roomId, entered } = await liveRoom(2);
    const [removed, stays] = entered as [Entered, Entered];
    // Joined to the media server, but not published yet.
    await node.attachPublisher(roomId, `${removed.sessionId}-2`);
    const { operation } = await worker.removeParticipant(roomId, removed.participantId);
    const working = workOnOperation(worker.deps, operation.id);
    await eventually(async () => (await node.listFeeds(roomId)).length === 1);
    expect(await endReason(removed.sessionId)).toBeNull();
    expect(await releaseSession(worker.deps.database.hot, removed.held)).toBe(true);
    await working;
    expect(await node.listFeeds(roomId)).toEqual([stays.feedId]);
    expect(await endReason(removed.sessionId)).toBe('removed');
    expect(await endReason(stays.sessionId)).toBeNull();
    expect(await attemptOf(operation.id)).toMatchObject({ outcome: 'completed', feedsRemoved: 2 });
    expect((await worker.events(roomId)).slice(-2)).toEqual(['track.unpublished', 'participant.left removed']);
  });

  test('tries again later when a living instance does not let go', async () => {
    const { roomId, entered } = await liveRoom(1);
    const [{ participantId, sessionId, held }] = entered as [Entered];
    const { operation } = await worker.removeParticipant(roomId, participantId);
    await workOnOperation(worker.deps, operation.id);
    expect(await attemptOf(operation.id)).toMatchObject({ outcome: 'retry', step: 'close its connection' });
    expect(await endReason(sessionId)).toBeNull();
    // Then the instance has let go in its own time: its grace is over.
    await markDisconnected(worker.deps.database, held);
    await worker.sql(
      `UPDATE participant_sessions SET disconnected_at = now() - interval '16 seconds' WHERE id = '${sessionId}'`,
    );
    await worker.sql(`UPDATE runtime_operations SET due_at = now() - interval '1 second' WHERE id = '${operation.id}'`);
    await workOnOperation(worker.deps, operation.id);
    expect(await endReason(sessionId)).toBe('removed');
  });

  test('waits for no instance that is dead, and for no media server that is away', async () => {
    const { roomId, entered } = await liveRoom(1, 'nowhere');
    const [{ participantId, sessionId }] = entered as [Entered];
    await worker.sql("UPDATE signaling_instances SET heartbeat_at = now() - interval '9 seconds'");
    const { operation } = await worker.removeParticipant(roomId, participantId);
    await workOnOperation(worker.deps, operation.id);
    expect(await attemptOf(operation.id)).toMatchObject({ outcome: 'completed', feedsRemoved: 'unreachable' });
    expect(await endReason(sessionId)).toBe('removed');
  });
});

describe('an orphaned media room', () => {
  test('is destroyed when the database says so twice; what is in use, ending, or of others is not', async () => {
    const [unknown, foreign] = ['room_nobodyknows', '1234'];
    const { roomId: inUse } = await liveRoom(1);
    const { roomId: elsewhere } = await liveRoom(1, 'nowhere');
    const { roomId: ending } = await liveRoom(1);
    await worker.endRoom(ending);
    await node.ensureRoom(unknown);
    await node.ensureRoom(foreign);
    const orphans = new MediaOrphans(worker.deps);
    const there = async () => {
      const rooms = new Set((await node.listRooms()).map(({ roomId }) => roomId));
      return [unknown, elsewhere, inUse, ending, foreign].map((roomId) => rooms.has(roomId));
    };
    await orphans.pass();
    expect(await there()).toEqual([true, true, true, true, true]);
    await orphans.pass();
    expect(await there()).toEqual([false, false, true, true, true]);
    await logged({ message: 'orphaned media room destroyed', roomId: unknown, reason: 'unknown', feeds: 0 });
    await logged({ message: 'orphaned media room destroyed', roomId: elsewhere, reason: 'placed elsewhere' });
  });

  test('that turned out to be moving is left alone', async () => {
    const { roomId } = await liveRoom(1, 'nowhere');
    const orphans = new MediaOrphans(worker.deps);
    await orphans.pass();
    await worker.sql(`UPDATE rooms SET media_node_id = 'm1' WHERE id = '${roomId}'`);
    await orphans.pass();
    expect(await node.hasRoom(roomId)).toBe(true);
  });
});

test('a room that the media server lost with a crash ends all the same', async () => {
  const { roomId } = await liveRoom(1);
  const { operation } = await worker.endRoom(roomId);
  janus.kill('SIGKILL');
  await eventually(() => node.state === 'down');
  await janus.start();
  await workOnOperation(worker.deps, operation.id);
  expect(await worker.row(operation.id)).toMatchObject({ status: 'completed' });
  expect(['absent', 'unreachable']).toContain((await attemptOf(operation.id))['media']);
});
