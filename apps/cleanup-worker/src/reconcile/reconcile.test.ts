import { beforeAll, expect, test } from '@jest/globals';
import { MediaNodes } from '@callplane/media';
import { endOne, eventually, joinOne, stopAtEnd } from '@callplane/testing';
import { NOON, startTestWorker, type TestWorker, workOnOperation } from '../worker.testkit.js';
import { endEmptyRooms, endLostSessions, forgetDeadInstances } from './presence.js';

let worker: TestWorker;
let media: MediaNodes;
beforeAll(async () => {
  const addresses = [{ id: 'nowhere', url: 'ws://127.0.0.1:9' }];
  media = MediaNodes.open({ addresses, apiSecret: 'secret', adminKey: 'key', random: Math.random });
  stopAtEnd(() => media.close());
  worker = await startTestWorker({ media });
});
const aged = (seconds: number) =>
  worker.sql(`UPDATE rooms SET empty_since = now() - interval '${seconds} seconds' WHERE empty_since IS NOT NULL`);
const roomOf = (id: string) => worker.deps.database.prisma.room.findUniqueOrThrow({ where: { id } });

test('concurrent sweeps end each lost session and write its events exactly once', async () => {
  const roomId = await worker.newRoom('created');
  await worker.enter(roomId);
  const lost = await worker.enter(roomId, { instanceId: 'dying' });
  await worker.sql("UPDATE signaling_instances SET heartbeat_at = now() - interval '16 seconds' WHERE id = 'dying'");
  await Promise.all([1, 2, 3].map(() => endLostSessions(worker.deps)));
  await eventually(() => worker.lines.length > 0);
  expect((await worker.events(roomId)).slice(-2)).toEqual(['track.unpublished', 'participant.left connection_lost']);
  expect(worker.lines.filter(({ message }) => message === 'lost sessions ended')).toMatchObject([
    { level: 'warn', count: 1, roomIds: [roomId], sessionIds: [lost.sessionId] },
  ]);
  await forgetDeadInstances(worker.deps);
  await eventually(() =>
    worker.lines.some((line) => line.message === 'signaling instance dead' && line['instanceId'] === 'dying'),
  );
  expect(await worker.deps.database.prisma.signalingInstance.findMany({ select: { id: true } })).toEqual([
    { id: 'instance' },
  ]);
  expect((await roomOf(roomId)).emptySince).toBeNull();
});

test('a room that has been empty for long enough ends through the same operation as one ended through the API', async () => {
  const [empty, fresh, unjoined] = [
    await worker.newRoom('created'),
    await worker.newRoom('created'),
    await worker.newRoom('created'),
  ];
  const leave = async (roomId: string) => {
    const { held } = await worker.enter(roomId);
    await endOne(worker.deps.database, held, 'left', NOON);
  };
  await leave(empty);
  await aged(61);
  await leave(fresh);
  await Promise.all([1, 2, 3].map(() => endEmptyRooms(worker.deps, 60_000)));
  expect([(await roomOf(empty)).status, (await roomOf(fresh)).status, (await roomOf(unjoined)).status]).toEqual([
    'ending',
    'active',
    'ending',
  ]);
  const { operation, wake } = await worker.endRoom(empty);
  expect(wake).toBeNull();
  const ends = () => worker.lines.filter((line) => line.message === 'empty room ends' && line['roomId'] === empty);
  await eventually(() => ends().length > 0);
  // The wake-up may miss its deadline of 250 ms on a busy machine.
  expect(ends()).toMatchObject([{ operationId: operation.id, woken: expect.any(Boolean) }]);
  await workOnOperation(worker.deps, operation.id);
  expect(await roomOf(empty)).toMatchObject({ status: 'ended' });
  expect((await worker.events(empty)).slice(-2)).toEqual(['participant.left left', 'room.ended']);
});

test('the time-out of a room goes before the setting of the deployment, and null is that setting', async () => {
  const long = await worker.newRoom('created', 3600);
  const short = await worker.newRoom('created', 60);
  const unset = await worker.newRoom('created');
  const emptyFor = (seconds: number) =>
    worker.sql(`UPDATE rooms SET empty_since = now() - interval '${seconds} seconds'
      WHERE id IN ('${long}', '${short}', '${unset}')`);
  const statuses = async () => [
    (await roomOf(long)).status,
    (await roomOf(short)).status,
    (await roomOf(unset)).status,
  ];
  await emptyFor(59);
  await endEmptyRooms(worker.deps, 0);
  expect(await statuses()).toEqual(['created', 'created', 'created']);
  await emptyFor(3599);
  await endEmptyRooms(worker.deps, 0);
  expect(await statuses()).toEqual(['created', 'ending', 'created']);
  await endEmptyRooms(worker.deps, 1_000_000);
  expect(await statuses()).toEqual(['created', 'ending', 'ending']);
  await emptyFor(3601);
  await endEmptyRooms(worker.deps, 0);
  expect(await statuses()).toEqual(['ending', 'ending', 'ending']);
});

test('a concurrent join prevents the end of an empty room', async () => {
  const roomId = await worker.newRoom('created');
  const { held, participantId } = await worker.enter(roomId);
  await endOne(worker.deps.database, held, 'left', NOON);
  await aged(61);
  const { database } = worker.deps;
  const { id: tokenId } = await database.prisma.participantToken.findFirstOrThrow({ where: { participantId } });
  const join = () =>
    joinOne(
      database,
      {
        tenant: worker.tenant,
        roomId,
        participantId,
        tokenId,
        permissions: ['room:join'],
        resumeSecretHash: new Uint8Array(32),
        instanceId: 'instance',
        mediaNodeId: null,
      },
      NOON,
    );
  let joining: ReturnType<typeof join> | undefined;
  await database.transaction(async (tx) => {
    await tx.$queryRaw`SELECT 1 FROM rooms WHERE id = ${roomId} FOR NO KEY UPDATE`;
    joining = join();
    await eventually(async () => {
      const [row] = await database.sql.$queryRaw<{ count: number }[]>`
        SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return row?.count === 1;
    });
    // The sweep skips the locked room instead of waiting for its lock.
    await endEmptyRooms(worker.deps, 60_000);
  });
  expect(await joining!).toMatchObject({ outcome: 'joined' });
  await endEmptyRooms(worker.deps, 60_000);
  expect(await roomOf(roomId)).toMatchObject({ status: 'active', emptySince: null });
});

test('no session counts as lost shortly after an outage of PostgreSQL, also if it ended while the rows were read', async () => {
  const roomId = await worker.newRoom('created');
  const { sessionId } = await worker.enter(roomId, { instanceId: 'cut off' });
  await worker.sql("UPDATE signaling_instances SET heartbeat_at = now() - interval '16 seconds' WHERE id = 'cut off'");
  const endedAt = async () =>
    (await worker.deps.database.prisma.participantSession.findUniqueOrThrow({ where: { id: sessionId } })).endedAt;
  const answers = [false, true, false];
  const outages = {
    get isSettled() {
      return answers.shift() ?? true;
    },
  };
  await endLostSessions({ ...worker.deps, outages });
  expect(answers).toEqual([true, false]);
  await endLostSessions({ ...worker.deps, outages });
  expect(answers).toEqual([]);
  expect(await endedAt()).toBeNull();
  await endLostSessions({ ...worker.deps, outages });
  expect(await endedAt()).not.toBeNull();
});
