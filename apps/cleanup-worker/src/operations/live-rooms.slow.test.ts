import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { claimOperation, releaseSession, writeMedia } from '@callplane/db';
import { MediaNodes, type MediaNode, type MediaSession } from '@callplane/media';
import {
  disconnectOne,
  endOne,
  eventually,
  hasMediaRoom,
  startTestJanus,
  stopAtEnd,
  type TestJanus,
} from '@callplane/testing';
import { endLostSessions } from '../reconcile/presence.js';
import { MediaOrphans } from '../reconcile/media-orphans.js';
import { NOON, startTestWorker, type Entered, type TestWorker, workOnOperation } from '../worker.testkit.js';
import { KINDS } from './kinds.js';

let janus: TestJanus;
let worker: TestWorker;
let node: MediaNode;
/** Of the feeds of the last live room. */
let mediaSession: MediaSession;
beforeAll(async () => {
  janus = await startTestJanus();
  const { apiSecret, adminKey } = janus;
  const addresses = [
    { id: 'm1', url: janus.url },
    { id: 'nowhere', url: 'ws://127.0.0.1:9' },
  ];
  const media = MediaNodes.open({ addresses, apiSecret, adminKey, random: Math.random, allowOutdated: true });
  stopAtEnd(() => media.close());
  worker = await startTestWorker({ media });
  node = media.get('m1')!;
});
beforeEach(async () => {
  worker.clock.set(NOON);
  await node.untilUp(60_000);
});

/** A room with joined participants whose feeds are on the media server. */
async function liveRoom(people: number, mediaNodeId = 'm1'): Promise<{ roomId: string; entered: Entered[] }> {
  const roomId = await worker.newRoom('active');
  await node.ensureRoom(roomId);
  const entered: Entered[] = [];
  for (let n = 0; n < people; n += 1) entered.push(await worker.enter(roomId, { mediaNodeId }));
  mediaSession = await node.openSession();
  await Promise.all(entered.map(({ feedId }) => mediaSession.attachPublisher(roomId, feedId)));
  return { roomId, entered };
}
/** The log line of an attempt. Lines arrive a moment after they are written. */
const attemptOf = (operationId: string, attempt = 1) =>
  eventually(() =>
    worker.lines.find(
      (line) =>
        line.message === 'operation attempt' && line['operationId'] === operationId && line['attempt'] === attempt,
    ),
  );
const logged = (fields: Record<string, unknown>) =>
  eventually(() => worker.lines.find((line) => Object.entries(fields).every(([name, value]) => line[name] === value)));
const dueAgain = (operationId: string) =>
  worker.sql(`UPDATE runtime_operations SET due_at = now() - interval '1 second' WHERE id = '${operationId}'`);
/** Does this while the media server answers nothing, and waits until it answers again. */
async function whileFrozen(work: () => Promise<void>): Promise<void> {
  janus.freeze();
  try {
    await work();
  } finally {
    janus.thaw();
  }
  await node.untilUp(60_000);
}
const gatewaysDie = () => worker.sql("UPDATE signaling_instances SET heartbeat_at = now() - interval '9 seconds'");
const graceEnds = (sessionId: string) =>
  worker.sql(
    `UPDATE participant_sessions SET disconnected_at = now() - interval '16 seconds' WHERE id = '${sessionId}'`,
  );
const endReason = async (sessionId: string) =>
  (await worker.deps.database.prisma.participantSession.findUniqueOrThrow({ where: { id: sessionId } })).endReason;

describe('room.end', () => {
  test('destroys the room on its media server and writes one leave event per participant', async () => {
    const { roomId } = await liveRoom(2);
    const id = await worker.workOn(worker.endRoom(roomId));
    expect(await hasMediaRoom(node, roomId)).toBe(false);
    expect(await worker.row(id)).toMatchObject({ status: 'completed', attempts: 1 });
    expect((await worker.events(roomId)).slice(4)).toEqual([
      'track.unpublished',
      'participant.left room_ended',
      'track.unpublished',
      'participant.left room_ended',
      'room.ended',
    ]);
    expect(await attemptOf(id)).toMatchObject({ outcome: 'completed', media: 'destroyed', sessionsEnded: 2 });
  });

  test('completes when the media server refuses connections or is no longer listed', async () => {
    for (const [mediaNodeId, message] of [
      ['nowhere', 'media node unavailable'],
      ['unknown', 'media node unknown'],
    ] as const) {
      const { roomId } = await liveRoom(1, mediaNodeId);
      const id = await worker.workOn(worker.endRoom(roomId));
      expect(await attemptOf(id)).toMatchObject({ outcome: 'completed', media: 'gone', mediaCheck: 'gone' });
      await logged({ message, roomId, mediaNodeId });
      expect((await worker.events(roomId)).slice(-2)).toEqual(['participant.left room_ended', 'room.ended']);
    }
  });

  test('ends the sessions while the media server is frozen, but completes only once the room is gone there', async () => {
    const { roomId } = await liveRoom(1);
    const { operation } = await worker.endRoom(roomId);
    await whileFrozen(async () => {
      await workOnOperation(worker.deps, operation.id);
      expect(await attemptOf(operation.id)).toMatchObject({
        outcome: 'retry',
        step: 'check that no media flows',
        media: 'unreachable',
        mediaCheck: 'unreachable',
        sessionsEnded: 1,
      });
      expect((await worker.events(roomId)).at(-1)).toBe('participant.left room_ended');
      await logged({ message: 'media node unavailable', roomId, state: 'unreachable' });
    });
    // Creates the room again like a gateway that was frozen too: Janus may have processed the destroy request.
    await node.ensureRoom(roomId);
    await dueAgain(operation.id);
    await workOnOperation(worker.deps, operation.id);
    expect(await attemptOf(operation.id, 2)).toMatchObject({
      outcome: 'completed',
      media: 'destroyed',
      mediaCheck: 'absent',
    });
    expect(await hasMediaRoom(node, roomId)).toBe(false);
    expect((await worker.events(roomId)).slice(-2)).toEqual(['participant.left room_ended', 'room.ended']);
  });

  test('completes in the fourth attempt without the media server, which destroys the room once it answers again', async () => {
    const { roomId } = await liveRoom(1);
    const { operation } = await worker.endRoom(roomId);
    const orphans = new MediaOrphans(worker.deps);
    await whileFrozen(async () => {
      await eventually(() => node.state === 'down');
      await worker.sql(`UPDATE runtime_operations SET attempts = 2, run_attempts = 2 WHERE id = '${operation.id}'`);
      for (const attempt of [3, 4]) {
        await workOnOperation(worker.deps, operation.id);
        expect(await attemptOf(operation.id, attempt)).toMatchObject({
          outcome: attempt < 4 ? 'retry' : 'completed',
          mediaCheck: 'unreachable',
        });
        await dueAgain(operation.id);
      }
      await orphans.pass();
    });
    // As above: the frozen Janus may have received a request to destroy the room.
    await node.ensureRoom(roomId);
    await orphans.pass();
    expect(await hasMediaRoom(node, roomId)).toBe(false);
    await logged({ message: 'orphaned media room destroyed', roomId, mediaNodeId: 'm1', reason: 'ended' });
    for (const [mediaNodeId, state] of [
      ['m1', 'down'],
      ['m1', 'up'],
      ['nowhere', 'down'],
    ]) {
      await logged({ message: 'media node state', mediaNodeId, state });
    }
  });

  test('repeats its steps safely after a worker died between any two of them', async () => {
    const { steps } = KINDS['room.end'];
    const how = { note: () => undefined, signal: new AbortController().signal };
    for (let died = 1; died <= steps.length; died += 1) {
      const { roomId } = await liveRoom(2);
      const { id } = (await worker.endRoom(roomId)).operation;
      const claim = await claimOperation(worker.deps.database.sql, id, randomUUID(), 60_000);
      for (const step of steps.slice(0, died)) await step.run(worker.deps, claim!, how);
      await worker.sql(
        `UPDATE runtime_operations SET lease_expires_at = now() - interval '1 second' WHERE id = '${id}'`,
      );
      await workOnOperation(worker.deps, id);
      expect(await worker.row(id)).toMatchObject({ status: 'completed', attempts: 2 });
      const events = await worker.events(roomId);
      expect(events.filter((event) => event.startsWith('participant.left'))).toHaveLength(2);
      expect(events.filter((event) => event === 'room.ended')).toHaveLength(1);
      expect(await hasMediaRoom(node, roomId)).toBe(false);
    }
  });
});

describe('participant.remove', () => {
  test('removes its feeds, waits until its signaling instance closes the connection, and ends its session', async () => {
    const { roomId, entered } = await liveRoom(2);
    const [removed, stays] = entered as [Entered, Entered];
    // This feed has joined the media server, but is not published yet.
    await (await node.openSession()).attachPublisher(roomId, `${removed.sessionId}-2`);
    const { operation } = await worker.removeParticipant(roomId, removed.participantId);
    const working = workOnOperation(worker.deps, operation.id);
    await eventually(async () => (await node.listFeeds(roomId)).length === 1);
    expect(await endReason(removed.sessionId)).toBeNull();
    expect(await releaseSession(worker.deps.database.sql, removed.held)).toBe(true);
    await working;
    expect(await node.listFeeds(roomId)).toEqual([stays.feedId]);
    expect(await endReason(removed.sessionId)).toBe('removed');
    expect(await endReason(stays.sessionId)).toBeNull();
    expect(await attemptOf(operation.id)).toMatchObject({ outcome: 'completed', feedsRemoved: 2 });
    expect((await worker.events(roomId)).slice(-2)).toEqual(['track.unpublished', 'participant.left removed']);
  });

  test('retries when a live signaling instance does not close the connection', async () => {
    const { roomId, entered } = await liveRoom(1);
    const [{ participantId, sessionId, held }] = entered as [Entered];
    const id = await worker.workOn(worker.removeParticipant(roomId, participantId));
    expect(await attemptOf(id)).toMatchObject({ outcome: 'retry', step: 'close the connection' });
    expect(await endReason(sessionId)).toBeNull();
    // Later the instance has marked the session as disconnected, and the grace period is over.
    await disconnectOne(worker.deps.database, held);
    await graceEnds(sessionId);
    await dueAgain(id);
    await workOnOperation(worker.deps, id);
    expect(await endReason(sessionId)).toBe('removed');
  });

  test('removes feeds that appeared after its first step, and completes only once they are gone', async () => {
    const { roomId, entered } = await liveRoom(2);
    const [{ participantId, sessionId, held }, stays] = entered as [Entered, Entered];
    const { operation } = await worker.removeParticipant(roomId, participantId);
    await releaseSession(worker.deps.database.sql, held);
    await whileFrozen(async () => {
      await workOnOperation(worker.deps, operation.id);
      expect(await attemptOf(operation.id)).toMatchObject({
        outcome: 'retry',
        step: 'check that no media flows',
        feedsRemoved: 'unreachable',
      });
      expect(await endReason(sessionId)).toBe('removed');
    });
    // The media server has kept the session for a process that claims it.
    await node.destroySession(mediaSession.id);
    await eventually(async () => (await node.listFeeds(roomId)).length === 0);
    for (const feedId of [`${sessionId}-2`, stays.feedId])
      await (await node.openSession()).attachPublisher(roomId, feedId);
    await dueAgain(operation.id);
    await workOnOperation(worker.deps, operation.id);
    expect(await attemptOf(operation.id, 2)).toMatchObject({ outcome: 'completed', feedsRemoved: 1, mediaCheck: 0 });
    expect(await node.listFeeds(roomId)).toEqual([stays.feedId]);
  });

  test('does not wait for a dead signaling instance or a media server that refuses connections', async () => {
    const { roomId, entered } = await liveRoom(1, 'nowhere');
    const [{ participantId, sessionId }] = entered as [Entered];
    await gatewaysDie();
    const id = await worker.workOn(worker.removeParticipant(roomId, participantId));
    expect(await attemptOf(id)).toMatchObject({ outcome: 'completed', feedsRemoved: 'gone' });
    expect(await endReason(sessionId)).toBe('removed');
  });
});

describe('media that a gateway has left', () => {
  /** A participant whose media another gateway could take over, and the session on the media server that holds it. */
  async function handedOver(): Promise<Entered & { roomId: string; media: MediaSession }> {
    const { roomId, entered } = await liveRoom(1);
    const [one] = entered as [Entered];
    const media = { connection: 1, nodeId: 'm1', generation: 1, janusSession: mediaSession.id };
    await writeMedia(worker.deps.database.sql, [{ held: one.held, media }]);
    return { ...one, roomId, media: mediaSession };
  }
  const isGone = async ({ id }: MediaSession) => (await node.destroySession(id)) === 'absent';

  test('ends when the participant is removed and its gateway is dead: the participant would receive until then', async () => {
    const { roomId, participantId, media } = await handedOver();
    await gatewaysDie();
    const id = await worker.workOn(worker.removeParticipant(roomId, participantId));
    expect(await attemptOf(id)).toMatchObject({ outcome: 'completed', mediaEnded: 1 });
    expect(await isGone(media)).toBe(true);
  });

  test('ends although its session has ended before: a gateway that does not reach PostgreSQL still carries it', async () => {
    const { roomId, participantId, held, media } = await handedOver();
    await endOne(worker.deps.database, held, 'left', NOON);
    await gatewaysDie();
    const id = await worker.workOn(worker.removeParticipant(roomId, participantId));
    expect(await attemptOf(id)).toMatchObject({ outcome: 'completed', mediaEnded: 1 });
    expect(await isGone(media)).toBe(true);
  });

  test('ends before the removal completes, although the media server was frozen in the first attempt', async () => {
    const { roomId, participantId, held, media } = await handedOver();
    await disconnectOne(worker.deps.database, held);
    await gatewaysDie();
    const { operation } = await worker.removeParticipant(roomId, participantId);
    await whileFrozen(async () => {
      await workOnOperation(worker.deps, operation.id);
      expect(await attemptOf(operation.id)).toMatchObject({
        outcome: 'retry',
        step: 'check that no media flows',
        mediaEnded: 'unreachable',
        sessionsCheck: 'unreachable',
      });
    });
    await dueAgain(operation.id);
    await workOnOperation(worker.deps, operation.id);
    expect(await attemptOf(operation.id, 2)).toMatchObject({ outcome: 'completed', sessionsCheck: 0 });
    expect(await isGone(media)).toBe(true);
  });

  test('ends with a session that no client resumes', async () => {
    const { held, media } = await handedOver();
    await disconnectOne(worker.deps.database, held);
    const { sessionId } = held;
    await graceEnds(sessionId);
    await endLostSessions(worker.deps);
    expect(await endReason(sessionId)).toBe('connection_lost');
    expect(await isGone(media)).toBe(true);
  });
});

describe('an orphaned media room', () => {
  test('is destroyed by the second pass that finds it; rooms in use, ending rooms and foreign rooms are kept', async () => {
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

  test('is kept if the second pass finds that it has moved to this server', async () => {
    const { roomId } = await liveRoom(1, 'nowhere');
    const orphans = new MediaOrphans(worker.deps);
    await orphans.pass();
    await worker.sql(`UPDATE rooms SET media_node_id = 'm1' WHERE id = '${roomId}'`);
    await orphans.pass();
    expect(await hasMediaRoom(node, roomId)).toBe(true);
  });
});
