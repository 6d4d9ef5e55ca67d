import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newId, roomCreated, type Tenant } from '@callplane/core';
import {
  acceptRoomEnd,
  createEnvironment,
  createProject,
  Database,
  insertRooms,
  type DueEndpoint,
  type ParticipantToInsert,
  type RoomToInsert,
  type TypedSql,
} from '@callplane/db';
import { createTestDatabase, eventually, PATIENT_DEADLINES, stopAtEnd, insertTestEndpoint } from '@callplane/testing';
import { sharedStatements, type SharedStatements } from './shared-statements.js';

const NOON = new Date('2030-01-01T12:00:00.000Z');

let database: Database;
let ada: Tenant;
let bob: Tenant;
beforeAll(async () => {
  const { url } = await createTestDatabase();
  database = new Database({ url, poolMax: 10, deadlines: PATIENT_DEADLINES });
  stopAtEnd(() => database.close());
  [ada, bob] = await Promise.all([newTenant(), newTenant()]);
});

/** The number of statements so far. */
let ran: number;
let shared: SharedStatements;
let woken: DueEndpoint[][];
beforeEach(() => {
  ran = 0;
  woken = [];
  const counting: TypedSql = {
    $queryRaw: (...args) => {
      ran += 1;
      return database.sql.$queryRaw(...args);
    },
    $executeRaw: () => Promise.reject(new Error('not used')),
  };
  shared = sharedStatements({ writes: counting, reads: counting, wake: (deliveries) => woken.push([...deliveries]) });
});

async function newTenant(): Promise<Tenant> {
  const tenant = { projectId: newId('project'), environmentId: newId('environment') };
  await createProject(database.prisma, { id: tenant.projectId, name: 'Test', createdAt: NOON });
  const environment = { id: tenant.environmentId, projectId: tenant.projectId, name: 'test', createdAt: NOON };
  await createEnvironment(database.prisma, environment);
  return tenant;
}

const newEndpoint = (tenant: Tenant) => insertTestEndpoint(database, tenant, { createdAt: NOON, updatedAt: NOON });

const NEW = { status: 'created' as const, startedAt: null, endedAt: null, recordingSince: null };

function roomOf(tenant: Tenant, metadata: Record<string, unknown> = {}): RoomToInsert {
  const room = {
    id: newId('room'),
    name: 'Room',
    metadata,
    maxParticipants: 7,
    emptyTimeoutSeconds: 60,
    record: null,
    encryption: 'none' as const,
    waitingRoom: false,
    createdAt: NOON,
  };
  const state = { ...room, ...NEW };
  return { tenant, room, created: roomCreated(tenant, state) };
}

async function newRoom(tenant: Tenant): Promise<string> {
  const insert = roomOf(tenant);
  await insertRooms(database.sql, [insert]);
  return insert.room.id;
}

function participantOf(tenant: Tenant, roomId: string): ParticipantToInsert {
  const token = {
    id: newId('token'),
    permissions: ['room:join' as const, 'audio:publish' as const],
    expiresAt: new Date(NOON.getTime() + 600_000),
  };
  return {
    tenant,
    participant: {
      id: newId('participant'),
      roomId,
      externalId: null,
      name: 'Ada',
      metadata: { a: 1 },
      role: 'participant',
      createdAt: NOON,
      token,
    },
  };
}

describe('concurrent rooms', () => {
  test('share a statement and a wake-up, and each gets the deliveries of its own tenant', async () => {
    const endpoints = { ada: [await newEndpoint(ada), await newEndpoint(ada)], bob: [await newEndpoint(bob)] };
    const rooms = [roomOf(ada, { n: 1 }), roomOf(bob), roomOf(ada, { n: 3 })];
    const inserting = Promise.all(rooms.map((room) => shared.insertRoom(room)));
    expect(shared.waiting).toBe(3);
    await inserting;
    expect([ran, shared.waiting, woken.length]).toEqual([1, 0, 1]);
    const wanted = [...endpoints.ada, ...endpoints.bob, ...endpoints.ada];
    expect(woken.flat().map(({ endpointId }) => endpointId)).toEqual(expect.arrayContaining(wanted));
    expect(woken.flat()).toHaveLength(wanted.length);
    for (const { tenant, room } of rooms) {
      const found = await shared.findRoom({ tenant, id: room.id });
      expect(found).toEqual({ ...room, ...NEW, participantCount: 0 });
      const [event] = await database.prisma.event.findMany({ where: { roomId: room.id } });
      expect(event).toMatchObject({ environmentId: tenant.environmentId, sequence: 1, type: 'room.created' });
      expect(JSON.parse(event!.body)).toMatchObject({ id: event!.id, sequence: 1, data: { room: { id: room.id } } });
      const written = await database.prisma.webhookDelivery.findMany({ where: { eventId: event!.id } });
      const own = tenant === ada ? endpoints.ada : endpoints.bob;
      expect(written.map(({ endpointId }) => endpointId).sort()).toEqual([...own].sort());
      for (const { environmentId, roomId } of written) {
        expect([environmentId, roomId]).toEqual([tenant.environmentId, room.id]);
      }
    }
  });

  test('are not repeated if PostgreSQL may have committed them', async () => {
    let calls = 0;
    const refusing: TypedSql = {
      $queryRaw: () => {
        calls += 1;
        return Promise.reject(Object.assign(new Error('terminating connection'), { code: '57P01' }));
      },
      $executeRaw: () => Promise.reject(new Error('not used')),
    };
    const refused = sharedStatements({ writes: refusing, reads: refusing, wake: () => undefined });
    const results = await Promise.allSettled([roomOf(ada), roomOf(ada)].map((room) => refused.insertRoom(room)));
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(calls).toBe(1);
  });
});

describe('concurrent reads', () => {
  test('share a statement, and find only rows of their tenant', async () => {
    const [own, other] = [await newRoom(ada), await newRoom(bob)];
    const wanted = [
      { tenant: ada, id: own },
      { tenant: bob, id: own },
      { tenant: bob, id: other },
      { tenant: ada, id: other },
      { tenant: ada, id: 'room_unknown' },
      { tenant: ada, id: own },
    ];
    const found = await Promise.all(wanted.map((one) => shared.findRoom(one)));
    expect(found.map((room) => room?.id ?? null)).toEqual([own, null, other, null, null, own]);
    expect(ran).toBe(1);
    expect(await shared.findRoom({ tenant: ada, id: own })).toEqual(found[0]);
  });
});

describe('concurrent tokens', () => {
  const written = async (inserts: readonly ParticipantToInsert[]) => {
    const ids = inserts.map(({ participant }) => participant.id);
    const rows = await database.prisma.participant.findMany({ where: { id: { in: ids } }, include: { tokens: true } });
    return ids.map((id) => rows.find((row) => row.id === id)?.tokens.map((token) => token.id) ?? null);
  };

  test('share a statement, and are written only in open rooms of their tenant', async () => {
    const [open, closed] = [await newRoom(ada), await newRoom(ada)];
    await acceptRoomEnd(database, ada, closed, NOON);
    const inserts = [open, closed, open, 'room_unknown'].map((roomId) => participantOf(ada, roomId));
    inserts.push(participantOf(bob, open));
    const statuses = await Promise.all(inserts.map((insert) => shared.insertParticipantIfOpen(insert)));
    expect(statuses).toEqual(['created', 'ending', 'created', null, null]);
    expect(ran).toBe(1);
    const tokens = [inserts[0]!, inserts[2]!].map(({ participant }) => [participant.token.id]);
    expect(await written(inserts)).toEqual([tokens[0], null, tokens[1], null, null]);
    const [token] = await database.prisma.participantToken.findMany({ where: { id: tokens[0]![0]! } });
    expect(token!.permissions).toEqual(['room:join', 'audio:publish']);
  });

  test('of a locked room wait for it, and delay no others', async () => {
    const [locked, free] = [await newRoom(ada), await newRoom(bob)];
    const inserts = [locked, locked].map((roomId) => participantOf(ada, roomId));
    let settled = 0;
    let waiting: Promise<unknown>[] = [];
    await database.transaction(async (tx) => {
      await tx.$executeRaw`UPDATE rooms SET status = 'ending' WHERE id = ${locked}`;
      waiting = inserts.map((insert) => shared.insertParticipantIfOpen(insert).finally(() => (settled += 1)));
      // More than the statements that run at once, so that each of them would wait.
      for (let n = 0; n < 5; n++) {
        expect(await shared.insertParticipantIfOpen(participantOf(bob, free))).toBe('created');
      }
      await eventually(() => database.connections().used >= 2);
      expect(settled).toBe(0);
    });
    expect(await Promise.all(waiting)).toEqual(['ending', 'ending']);
    expect(await written(inserts)).toEqual([null, null]);
  });
});
