import { randomUUID } from 'node:crypto';
import { dayOf, newId } from '@callplane/core';
import { participantRow, roomRow } from '@callplane/testing';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { TypedSql } from '../client/database.js';
import { claimOperation } from '../operations/operation-leases.js';
import { publishTracks, setTracksMuted } from '../sessions/session-tracks.js';
import { endParticipantPresence, endSessions } from '../sessions/session-ends.js';
import { NOON, startTestRooms, type TestRooms } from '../sessions/sessions.testkit.js';
import { registerMediaNode } from '../media/media-registry.js';
import { readRoomChanges } from '../sessions/room-changes.js';
import { requestErasure } from '../participants/participant-erasure.js';
import { updateRoom } from '../rooms/rooms.repository.js';
import { takeSweep } from '../sweeps/sweep-lease.js';
import { readUsage } from '../usage/usage.js';
import { saveCapture, saveCapturePass, wantedCaptures } from './recording-captures.js';
import { findOverdueRecordings, stopRecordings } from './recording-ends.js';
import { deleteErasedRecordings, deleteOldRecordings, findErasedFiles } from './recording-retention.js';
import { cancelProcessing, openMediaServers, seeRecordingEnd, settleRecording } from './recording-work.js';
import { startRecording } from './recordings.repository.js';

let rooms: TestRooms;
beforeAll(async () => {
  rooms = await startTestRooms();
  const lease = { name: 'recorder longest durations', holder: 'test', leaseMs: 600_000, finishedMsAgo: null };
  await takeSweep(rooms.database.sql, lease);
});

async function record(roomId: string, maxDurationSeconds = 3600): Promise<string> {
  // Its media server records.
  await saveCapturePass(rooms.database.sql, 'm1', new Date());
  const id = newId('recording');
  const recording = {
    id,
    participantId: null,
    mode: 'tracks' as const,
    audioOnly: false,
    layout: null,
    metadata: {},
    maxDurationSeconds,
  };
  const outcome = await rooms.database.transaction((tx) => startRecording(tx, rooms.tenant, roomId, recording));
  expect(outcome).toMatchObject({ deliveries: [] });
  return id;
}

const beginAt = (id: string, msAgo: number) =>
  rooms.database.prisma.recording.update({ where: { id }, data: { startedAt: new Date(Date.now() - msAgo) } });

const stop = (roomId: string, id: string | null = null) =>
  rooms.database.transaction((tx) => stopRecordings(tx, rooms.tenant, roomId, id, new Date()));

const enter = async (roomId: string) => (await rooms.enter(roomId, { mediaNodeId: 'm1' })).held;

const track = (trackId: string, mid: string, muted = false) =>
  ({ trackId, kind: 'audio', source: 'microphone', muted, feedId: 'feed', mid }) as const;
const publish = (held: Awaited<ReturnType<typeof enter>>, ...tracks: ReturnType<typeof track>[]) =>
  publishTracks(rooms.database, held, tracks, NOON);
const spansOf = async (roomId: string) =>
  (await rooms.database.prisma.recordingSpan.findMany({ where: { roomId }, orderBy: { id: 'asc' } })).map(
    ({ trackId, mid, muted, endedAt }) => `${trackId} ${mid}${muted ? ' muted' : ''}${endedAt === null ? '' : ' over'}`,
  );

describe('the spans of a room', () => {
  test('begin with the recording, and follow every change of a track', async () => {
    const roomId = await rooms.newRoom();
    const held = await enter(roomId);
    await publish(held, track('mic', '0'));
    expect(await spansOf(roomId)).toEqual([]);
    await record(roomId);
    expect(await spansOf(roomId)).toEqual(['mic 0']);
    await setTracksMuted(rooms.database, [{ held, trackId: 'mic', muted: true }]);
    await publish(held, track('mic', '0', true), track('other', '1'));
    expect(await spansOf(roomId)).toEqual(['mic 0 over', 'mic 0 muted', 'other 1']);
    await endSessions(rooms.database, roomId, [held], 'left', NOON);
    expect(await spansOf(roomId)).toEqual(['mic 0 over', 'mic 0 muted over', 'other 1 over']);
  });

  test('end after the recording, and do not begin any more', async () => {
    const roomId = await rooms.newRoom();
    const held = await enter(roomId);
    await record(roomId);
    await publish(held, track('mic', '0'));
    await stop(roomId);
    await publish(held, track('new', '1'));
    expect(await spansOf(roomId)).toEqual(['mic 0 over']);
  });

  test('of a removed participant end with its session, and the other spans stay open', async () => {
    const roomId = await rooms.newRoom();
    const [ada, bob] = [await rooms.enter(roomId, { mediaNodeId: 'm1' }), await enter(roomId)];
    await record(roomId);
    await publish(ada.held, track('removed', '0'));
    await publish(bob, track('stays', '0'));
    await rooms.remove(roomId, ada.participantId);
    await rooms.database.transaction((tx) => endParticipantPresence(tx, ada.participantId, 'removed', NOON));
    expect(await spansOf(roomId)).toEqual(['removed 0 over', 'stays 0']);
  });

  test('have a track that is published while the recording starts', async () => {
    for (let n = 0; n < 10; n += 1) {
      const roomId = await rooms.newRoom();
      const held = await enter(roomId);
      await Promise.all([record(roomId), publish(held, track('mic', '0'))]);
      expect(await spansOf(roomId)).toEqual(['mic 0']);
    }
  });
});

describe('the room', () => {
  const state = async (roomId: string) => {
    const read = await readRoomChanges(rooms.database.sql, [{ roomId, after: null }]);
    const { room, version } = read.get(roomId)!;
    return { since: room.recordingSince, version };
  };

  test('says since when it is recorded, until its last recording stops', async () => {
    const roomId = await rooms.newRoom();
    const { version } = await state(roomId);
    const first = await record(roomId);
    const begin = (await state(roomId)).since!;
    const second = await record(roomId);
    expect(await state(roomId)).toEqual({ since: begin, version: version + 1 });
    await stop(roomId, first);
    expect(await state(roomId)).toEqual({ since: begin, version: version + 1 });
    await stop(roomId, second);
    await stop(roomId, second);
    expect(await state(roomId)).toEqual({ since: null, version: version + 2 });
    const where = { roomId, type: { startsWith: 'recording.' } };
    const events = await rooms.database.prisma.event.findMany({ where, orderBy: { sequence: 'asc' } });
    const said = events.map(({ body }) => JSON.parse(body).data.room.recordingSince);
    expect(said).toEqual([begin.toISOString(), begin.toISOString(), begin.toISOString(), null]);
  });

  test('says so whatever starts and stops at the same time', async () => {
    for (let n = 0; n < 10; n += 1) {
      const roomId = await rooms.newRoom();
      const ids = [await record(roomId), await record(roomId)];
      const [third] = await Promise.all([record(roomId), ...ids.map((id) => stop(roomId, id))]);
      expect((await state(roomId)).since).not.toBeNull();
      await Promise.all([stop(roomId, third), stop(roomId)]);
      expect((await state(roomId)).since).toBeNull();
    }
  });
});

describe('the usage', () => {
  test('counts a recording that has ended, and its files once they are complete, also after its deletion', async () => {
    const roomId = await rooms.newRoom();
    const today = dayOf(new Date());
    const usage = async () => {
      const [day] = await readUsage(rooms.database.sql, rooms.tenant, today, today, new Date());
      return [day!.recordedMs, day!.convertedMs, day!.recordedBytes] as const;
    };
    const id = await record(roomId, 10);
    await beginAt(id, 60_000);
    const [recorded, converted, bytes] = await usage();
    await stop(roomId, id);
    expect(await usage()).toEqual([recorded + 10_000, converted, bytes]);
    const files = [
      { durationMs: 4000, bytes: 7 },
      { durationMs: 5000, bytes: 8 },
    ];
    await rooms.database.prisma.recording.update({ where: { id }, data: { files } });
    const subject = { ...rooms.tenant, subjectId: id, roomId };
    const settle = () =>
      rooms.database.transaction((tx) => settleRecording(tx, subject, { status: 'completed' }, new Date()));
    await settle();
    await settle();
    await rooms.database.prisma.recording.delete({ where: { id } });
    expect(await usage()).toEqual([recorded + 10_000, converted + 9000, bytes + 15]);
  });
});

describe('the option of a room', () => {
  const recordings = (roomId: string) => rooms.database.prisma.recording.findMany({ where: { roomId } });

  test('starts one recording with the first participant, in the transaction of the join', async () => {
    const record = { mode: 'tracks', audioOnly: true, metadata: { lesson: 7 } };
    const roomId = await rooms.newRoom({ record });
    expect(await recordings(roomId)).toEqual([]);
    const invited = await Promise.all([rooms.invite(roomId), rooms.invite(roomId)]);
    const joined = await Promise.all(invited.map((one) => rooms.join(roomId, one)));
    expect(joined.map(({ outcome }) => outcome)).toEqual(['joined', 'joined']);
    const [row, ...more] = await recordings(roomId);
    expect(more).toEqual([]);
    const defaults = { maxDurationSeconds: 14_400, participantId: null, status: 'recording' };
    expect(row).toMatchObject({ ...record, ...defaults });
    const { room } = (await readRoomChanges(rooms.database.sql, [{ roomId, after: null }])).get(roomId)!;
    expect(room.recordingSince).toEqual(row!.startedAt);
    const types = (await rooms.events(roomId)).map(({ type }) => type);
    expect(types.filter((type) => type !== 'participant.joined')).toEqual(['room.started', 'recording.started']);
    // A later join starts no other one.
    await stop(roomId);
    await rooms.enter(roomId);
    expect(await recordings(roomId)).toHaveLength(1);
  });

  test('starts nothing with a refused join, or once the room has begun', async () => {
    const [roomId, begun] = [
      await rooms.newRoom({ record: { mode: 'tracks' }, maxParticipants: 1 }),
      await rooms.newRoom(),
    ];
    const one = await rooms.invite(roomId);
    await rooms.remove(roomId, one.participantId);
    expect(await rooms.join(roomId, one)).toMatchObject({ outcome: 'removed' });
    await rooms.enter(begun);
    await updateRoom(rooms.database, rooms.tenant, begun, { record: { mode: 'tracks' } }, new Date());
    await rooms.enter(begun);
    expect([await recordings(roomId), await recordings(begun)]).toEqual([[], []]);
  });
});

describe('what a media server records', () => {
  const wanted = async (nodeId = 'm1') =>
    new Map((await wantedCaptures(rooms.database.sql, nodeId)).wanted.map((each) => [each.roomId, each.recordings]));

  test('are the rooms on it with a running recording, until the room ends or the longest duration is over', async () => {
    const [roomId, ending, overdue] = [await rooms.newRoom(), await rooms.newRoom(), await rooms.newRoom()];
    for (const each of [roomId, ending, overdue]) await enter(each);
    const ids = [await record(roomId), await record(roomId)];
    await record(ending);
    const late = await record(overdue, 10);
    await beginAt(late, 11_000);
    await rooms.end(ending);
    const now = await wanted();
    expect([now.get(roomId), now.has(ending), now.has(overdue)]).toEqual([ids.sort().join(' '), false, false]);
    expect((await wanted('m2')).has(roomId)).toBe(false);
    const overdueIds = (await findOverdueRecordings(rooms.database.sql, 100)).map(({ recordingId }) => recordingId);
    expect(overdueIds).toEqual([late]);
    const { recordings } = await stop(overdue, late);
    // As long as it may be, however late the sweep is.
    expect(recordings[0]!.endedAt!.getTime() - recordings[0]!.startedAt.getTime()).toBe(10_000);
  });

  test('is complete once a pass of its agent has begun after the end was seen', async () => {
    const roomId = await rooms.newRoom();
    await enter(roomId);
    const id = await record(roomId);
    const capture = { roomId, nodeId: 'm9', name: 'file', kind: 'audio', feedId: 'feed', section: 0 } as const;
    await saveCapture(rooms.database.sql, { ...capture, startedAt: new Date(), bytes: 1, chunks: 1, closed: false });
    await saveCapturePass(rooms.database.sql, 'm9', new Date());
    await stop(roomId, id);
    const open = async (endSeenAt: Date) =>
      new Map(
        (await openMediaServers(rooms.database.sql, roomId, endSeenAt)).map(({ nodeId, isLost }) => [nodeId, isLost]),
      );
    const endSeenAt = new Date(Date.now() + 1);
    expect(await open(endSeenAt)).toEqual(
      new Map([
        ['m1', false],
        ['m9', false],
      ]),
    );
    for (const nodeId of ['m1', 'm9'])
      await saveCapturePass(rooms.database.sql, nodeId, new Date(endSeenAt.getTime() + 1));
    expect(await open(endSeenAt)).toEqual(new Map());
    // Its latest pass could not ship everything of the room: it waits for an hour, and no other room does.
    await saveCapturePass(rooms.database.sql, 'm9', new Date(endSeenAt.getTime() + 1), [roomId]);
    expect(await open(endSeenAt)).toEqual(new Map([['m9', false]]));
    expect((await open(new Date(Date.now() - 3_601_000))).get('m9')).toBe(true);
    await saveCapturePass(rooms.database.sql, 'm9', new Date(endSeenAt.getTime() + 1), ['room_other']);
    expect(await open(endSeenAt)).toEqual(new Map());
    // A server without a pass for minutes after the end counts as lost.
    const long = new Date(Date.now() - 600_000);
    await saveCapturePass(rooms.database.sql, 'm9', long);
    expect((await open(long)).get('m9')).toBe(true);
    // Not while its agent lives: the store may be away, and has an hour to come back.
    const beats = (heartbeatAt: Date) =>
      rooms.database.prisma.mediaNode.update({ where: { id: 'm9' }, data: { heartbeatAt } });
    const agent = { id: 'm9', url: 'ws://127.0.0.1:1', capacity: 9, region: null, hasAgent: true };
    expect(await registerMediaNode(rooms.database.sql, agent)).toBe('registered');
    expect((await open(long)).get('m9')).toBe(false);
    await beats(long);
    expect((await open(long)).get('m9')).toBe(true);
    const hour = new Date(Date.now() - 3_601_000);
    await saveCapturePass(rooms.database.sql, 'm9', hour);
    await beats(new Date());
    expect((await open(hour)).get('m9')).toBe(true);
  });
});

describe('the end of a recording', () => {
  test('is seen once, after its commit, whatever the clock of the API says', async () => {
    const roomId = await rooms.newRoom();
    const id = await record(roomId);
    await stop(roomId, id);
    const [{ now }] = await rooms.database.sql.$queryRaw<[{ now: Date }]>`SELECT now()`;
    const seen = await seeRecordingEnd(rooms.database.sql, id);
    expect(seen.getTime()).toBeGreaterThanOrEqual(now.getTime());
    expect(await seeRecordingEnd(rooms.database.sql, id)).toEqual(seen);
  });
});

describe('the processing of a recording', () => {
  test('is cancelled by a deletion unless a worker holds it', async () => {
    const roomId = await rooms.newRoom();
    const [first, second] = [await record(roomId), await record(roomId)];
    await stop(roomId);
    const { sql } = rooms.database;
    const operation = await rooms.database.prisma.runtimeOperation.findFirstOrThrow({ where: { subjectId: second } });
    await claimOperation(sql, operation.id, randomUUID(), 60_000);
    const cancel = (id: string) => rooms.database.transaction((tx) => cancelProcessing(tx, id, NOON));
    expect([await cancel(first), await cancel(first), await cancel(second)]).toEqual([true, true, false]);
  });

  test('ends with an event, and not for a recording that was deleted', async () => {
    const roomId = await rooms.newRoom();
    const id = await record(roomId);
    await stop(roomId);
    const subject = { ...rooms.tenant, subjectId: id, roomId };
    const settle = (end: Parameters<typeof settleRecording>[2]) =>
      rooms.database.transaction((tx) => settleRecording(tx, subject, end, new Date()));
    await settle({ status: 'failed', error: { code: 'STEP_FAILED', message: 'no' } });
    // An operator has started another run.
    await settle({ status: 'completed' });
    await settle({ status: 'completed' });
    const types = (await rooms.events(roomId)).map(({ type }) => type).filter((type) => type.startsWith('recording.'));
    expect(types).toEqual(['recording.started', 'recording.stopped', 'recording.failed', 'recording.completed']);
  });
});

describe('the scans of the housekeeping', () => {
  /** The plan of the first statement of a scan. */
  async function planOf(tx: TypedSql, scan: (db: TypedSql) => PromiseLike<unknown>): Promise<string> {
    let plan = '';
    const explain = async ([first, ...others]: TemplateStringsArray, ...values: unknown[]) => {
      const parts = [`EXPLAIN ${first}`, ...others];
      const lines = await tx.$queryRaw<object[]>(Object.assign(parts, { raw: parts }), ...values);
      plan = lines.flatMap((line) => Object.values(line)).join('\n');
      return [];
    };
    await scan({ ...tx, $queryRaw: explain as TypedSql['$queryRaw'] });
    return plan;
  }

  test('read the old recordings only, and the ones in rooms of erased participants', async () => {
    const made = Array.from({ length: 400 }, () => roomRow(rooms.tenant));
    const roomIds = made.map(({ id }) => id);
    const people = made.map(({ id }) => participantRow(rooms.tenant, id));
    await rooms.database.prisma.room.createMany({ data: made });
    await rooms.database.prisma.participant.createMany({ data: people });
    await requestErasure(rooms.database, people[0]!.id, new Date());
    const yesterday = new Date(Date.now() - 86_400_000);
    const plans = await rooms.database.transaction(async (tx) => {
      await tx.$executeRaw`
        INSERT INTO recordings (id, environment_id, room_id, mode, audio_only, metadata, max_duration_seconds, status,
          started_at, ended_at, completed_at)
        SELECT 'rec_' || room_id || n, ${rooms.tenant.environmentId}, room_id, 'tracks', false, '{}', 60, 'completed',
          now(), now(), now()
        FROM unnest(${roomIds}::text[]) room_id, generate_series(1, 10) n`;
      await tx.$executeRaw`ANALYZE recordings, participants, participant_erasures`;
      const scans = [
        (db: TypedSql) => deleteOldRecordings(db, yesterday, NOON),
        (db: TypedSql) => deleteErasedRecordings(db, null, NOON),
        (db: TypedSql) => findErasedFiles(db, null),
      ];
      const found: string[] = [];
      for (const scan of scans) found.push(await planOf(tx, scan));
      return found;
    });
    expect(plans[0]).toContain('recordings_ended_idx');
    for (const plan of plans.slice(1)) expect(plan).toContain('recordings_room_id_id_idx');
    for (const plan of plans) expect(plan).not.toMatch(/Seq Scan on (recordings|participants)\b/);
  });
});
