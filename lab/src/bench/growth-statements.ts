import { randomUUID } from 'node:crypto';
import { RUN_AGE_MS_MAX, roomCreated } from '@callplane/core';
import {
  claimDeliveries,
  deleteOldDeliveries,
  deleteOldEvents,
  endExpiredLeases,
  expireRuns,
  findDelivery,
  findDueEndpoints,
  findRoom,
  insertRooms,
  listDeliveries,
  listEvents,
  moveDueFloor,
  readDue,
  settleDeliveries,
  settleExhaustedOperation,
  takeDueOperations,
} from '@callplane/db';
import type pg from 'pg';
import { OPEN } from './growth-rows.js';

/** Its functions run on {@link TypedSql} of the benchmark. */
export type Statement = readonly [
  name: string,
  run: (db: any, prepared: any) => unknown,
  /** Runs before the statement in the same transaction, and is not measured. */
  prepare?: (db: any) => unknown,
];

/**
 * The frequent statements and the sweeps, on the rows of `growth-rows.ts`.
 */
export async function growthStatements(
  client: pg.Client,
  tenant: { projectId: string; environmentId: string },
): Promise<Statement[]> {
  const { rows } = await client.query(
    `SELECT endpoint_id FROM webhook_deliveries WHERE status = 'pending' ORDER BY id LIMIT 4`,
  );
  // The oldest events, whose deliveries are open, stay.
  const { rows: events } = await client.query(
    `SELECT created_at AS "createdAt", id FROM events ORDER BY created_at, id OFFSET $1 LIMIT 1`,
    [OPEN - 1],
  );
  const lastOpen = events[0];
  const endpointId = `whep_${'0'.repeat(26)}`;
  const deliveryId = `dlv_${'1'.padStart(26, '0')}`;
  const roomId = `room_${'0'.repeat(25)}x`;
  const room = {
    id: roomId,
    name: 'Growth',
    metadata: {},
    maxParticipants: 10,
    createdAt: new Date(),
    status: 'created' as const,
    startedAt: null,
    endedAt: null,
  };
  const page = { beforeId: null, limit: 20 };
  const noFilter = { endpointId: null, status: null, eventType: null, failureReason: null, since: null, until: null };
  const attempt = {
    durationMs: 20,
    outcome: 'success' as const,
    errorCode: null,
    statusCode: 200,
    address: '192.0.2.1',
    timings: { dnsMs: 1, connectMs: 1, tlsMs: 1, firstByteMs: 1 },
    responseBody: '',
    responseTruncated: false,
    exchange: {
      request: {
        signedAt: 1_795_000_000,
        signature: '0123abcd',
        traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      },
    },
  };
  const inTransaction = (db: any): any => ({ sqlTransaction: (work: (tx: any) => unknown) => work(db) });
  const claim = (db: any) =>
    claimDeliveries(
      { claimsDatabase: { sql: db }, database: inTransaction(db) },
      { endpointId: rows[0]?.endpoint_id, lane: 'slow', token: randomUUID(), leaseMs: 120_000, afterRoomId: '' },
    );
  const endedOf = ({ claimed }: Awaited<ReturnType<typeof claimDeliveries>>) =>
    claimed.map((held) => ({
      claim: held,
      attempt,
      after: { status: 'succeeded' } as const,
      proves: true,
      slotMs: 64,
    }));
  return [
    ['create a room: 10 deliveries', (db) => insertRooms(db, [{ tenant, room, created: roomCreated(tenant, room) }])],
    ['claim 8 deliveries', claim],
    ['settle 8 deliveries', (db, claims) => settleDeliveries(db, endedOf(claims)), claim],
    ['read a delivery', (db) => findDelivery(db, tenant, endpointId, deliveryId)],
    ['list deliveries', (db) => listDeliveries(db, tenant, { ...noFilter, endpointId }, page)],
    ['list failed deliveries', (db) => listDeliveries(db, tenant, { ...noFilter, endpointId, status: 'failed' }, page)],
    [
      'list failed deliveries of all endpoints',
      (db) => listDeliveries(db, tenant, { ...noFilter, status: 'failed' }, page),
    ],
    [
      'list deliveries of all endpoints, of a type',
      (db) => listDeliveries(db, tenant, { ...noFilter, eventType: 'webhook.test' }, page),
    ],
    [
      'list deliveries of all endpoints, of a reason',
      (db) => listDeliveries(db, tenant, { ...noFilter, failureReason: 'rejected' }, page),
    ],
    ['list events', (db) => listEvents(db, tenant, { type: null, after: null, limit: 20 })],
    ['read a room', (db) => findRoom(db, tenant, roomId)],
    ['scan: endpoints with due deliveries', (db) => findDueEndpoints(db, 0, { afterId: '', limit: 1000 })],
    [
      'sweep: move the floor of operations',
      (db) => moveDueFloor(inTransaction(db), 'operations', { checkEveryMs: Infinity }),
    ],
    ['sweep: leases that ran out', (db) => endExpiredLeases(db, 120_000, 100)],
    ['sweep: runs that are too old', (db) => expireRuns(db, RUN_AGE_MS_MAX, 100)],
    [
      'scan: operations',
      (db) => takeDueOperations(db, { quietMs: 10_000, perEnvironment: 16, limit: 64, after: null }),
    ],
    ['retention: 500 deliveries', (db) => deleteOldDeliveries(db, 30, 500)],
    [
      'retention: 500 events',
      (db) => deleteOldEvents(db, 30, 500, lastOpen),
      // Their deliveries are deleted first.
      (db) => deleteOldDeliveries(db, 30, 500),
    ],
    ['metric: due rows', (db) => readDue(db)],
    ['sweep: operations without an attempt left', (db) => settleExhaustedOperation(db)],
  ];
}
