import { randomUUID } from 'node:crypto';
import { newId, type Tenant } from '@callplane/core';
import { createTestDatabase, createTestTenant, roomRow, stopAtEnd } from '@callplane/testing';
import { beforeEach, expect, test } from '@jest/globals';
import { Database } from '../client/database.js';
import { findRecording } from '../recordings/recordings.repository.js';
import { claimInTurn, settleOperation } from './operation-leases.js';

let database: Database;
let tenants: Record<string, Tenant>;
beforeEach(async () => {
  const { url } = await createTestDatabase();
  database = new Database({ url, poolMax: 5 });
  stopAtEnd(() => database.close());
  const [busy, calm, late] = [
    await createTestTenant(database),
    await createTestTenant(database),
    await createTestTenant(database),
  ];
  tenants = { busy, calm, late };
});

/** Recordings that have ended, each a second before the next one. */
async function wait(name: string, count: number, secondsAgo: number): Promise<void> {
  const { environmentId } = tenants[name]!;
  const room = await database.prisma.room.create({ data: roomRow(tenants[name]!) });
  for (let n = 1; n <= count; n += 1) {
    const [id, at] = [newId('recording'), new Date(Date.now() - (secondsAgo - n) * 1000)];
    const common = { environmentId, roomId: room.id };
    await database.prisma.recording.create({
      data: {
        ...{ id, ...common, mode: 'tracks', audioOnly: false, metadata: { name: `${name} ${n}` } },
        ...{ maxDurationSeconds: 60, status: 'processing', startedAt: at, endedAt: at },
      },
    });
    await database.prisma.runtimeOperation.create({
      data: {
        ...{ id: newId('operation'), ...common, kind: 'recording.process', subjectId: id, status: 'pending' },
        ...{ createdAt: at, dueAt: at },
      },
    });
  }
}
const nameOf = async (id: string) =>
  ((await database.prisma.recording.findUniqueOrThrow({ where: { id } })).metadata as { name: string }).name;
const claim = () => claimInTurn(database.sql, 'recording.process', randomUUID(), 60_000);

/** One worker with one slot. @returns the names in the order of the claims */
async function work(count: number, end: 'completed' | 'failed' = 'completed'): Promise<string[]> {
  const order: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const claimed = await claim();
    if (claimed === null) break;
    order.push(await nameOf(claimed.subjectId));
    const error = { code: 'STEP_FAILED', message: 'no' } as const;
    const outcome =
      end === 'completed' ? { status: end, now: new Date() } : { status: 'pending' as const, error, delayMs: 0 };
    await settleOperation(database.sql, claimed, outcome);
  }
  return order;
}

/** The names in the order of their positions. */
async function positions(): Promise<string[]> {
  const rows = await database.prisma.recording.findMany({ select: { id: true, environmentId: true } });
  const found: [number, string][] = [];
  for (const { id, environmentId } of rows) {
    const position = (await findRecording(database.sql, { environmentId, projectId: '' }, id))?.queuePosition ?? null;
    if (position !== null) found.push([position, await nameOf(id)]);
  }
  expect(found.map(([position]) => position).sort((a, b) => a - b)).toEqual(found.map((_, index) => index + 1));
  return found.sort(([a], [b]) => a - b).map(([, name]) => name);
}

test('an environment with many recordings that wait delays the one of another by one turn, as the positions say', async () => {
  await wait('busy', 6, 600);
  expect(await work(2)).toEqual(['busy 1', 'busy 2']);
  await wait('calm', 1, 60);
  await wait('late', 2, 30);
  const expected = ['calm 1', 'late 1', 'busy 3', 'late 2', 'busy 4', 'busy 5', 'busy 6'];
  expect((await positions()).slice(0, 3)).toEqual(expected.slice(0, 3));
  expect(await work(9)).toEqual(['calm 1', 'late 1', 'busy 3', 'late 2', 'busy 4', 'busy 5', 'busy 6']);
  expect(await positions()).toEqual([]);
});

test('an environment whose recordings fail keeps no other one waiting', async () => {
  await wait('busy', 3, 600);
  await wait('calm', 2, 60);
  expect(await work(4, 'failed')).toEqual(['busy 1', 'calm 1', 'busy 2', 'calm 2']);
});

test('a hundred moves of one environment delay the move of another by one turn', async () => {
  const move = async (name: string, count: number): Promise<void> => {
    const { environmentId } = tenants[name]!;
    const room = await database.prisma.room.create({ data: roomRow(tenants[name]!) });
    const [kind, input] = ['participant.move', { roomId: room.id, permissions: null }];
    const of = { environmentId, roomId: room.id, kind, input, status: 'pending', createdAt: new Date() };
    const dueAt = new Date(Date.now() - 1000);
    const data = Array.from({ length: count }, () => {
      return { ...of, id: newId('operation'), subjectId: newId('participant'), dueAt };
    });
    await database.prisma.runtimeOperation.createMany({ data });
  };
  const claimMove = async () => {
    const claimed = await claimInTurn(database.sql, 'participant.move', randomUUID(), 60_000);
    return Object.keys(tenants).find((name) => tenants[name]!.environmentId === claimed?.environmentId);
  };
  await move('busy', 100);
  expect([await claimMove(), await claimMove()]).toEqual(['busy', 'busy']);
  await move('calm', 2);
  expect([await claimMove(), await claimMove(), await claimMove()]).toEqual(['calm', 'busy', 'calm']);
});

test('workers that claim at the same time get different operations', async () => {
  await wait('busy', 3, 600);
  await wait('calm', 2, 60);
  const claimed = await Promise.all(Array.from({ length: 7 }, claim));
  const ids = claimed.flatMap((each) => each?.id ?? []);
  expect([ids.length, new Set(ids).size]).toEqual([5, 5]);
});
