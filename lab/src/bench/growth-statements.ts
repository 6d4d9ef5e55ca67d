import { RUN_AGE_MS_MAX, roomCreated } from '@callplane/core';
import {
  claimDueDeliveries,
  deleteOldDeliveries,
  deleteOldEvents,
  endExpiredLeases,
  expireRuns,
  findDelivery,
  findDueOperations,
  findRoom,
  firstLeaseExpiry,
  freeParkedDeliveries,
  insertRooms,
  listDeliveries,
  listEvents,
  moveDueFloor,
  readBacklogs,
  scanBacklogs,
  scanNewlyDue,
  settleDeliveries,
  settleExhaustedOperation,
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

/** Where claims and sweeps begin, as in a worker. */
export interface Beginnings {
  since: Date;
  leasesFrom: Date;
  runsFrom: Date;
}

/**
 * The frequent statements and the sweeps, on the rows of `growth-rows.ts`.
 */
export async function growthStatements(
  client: pg.Client,
  tenant: { projectId: string; environmentId: string },
  { since, leasesFrom, runsFrom }: Beginnings,
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
  const asks = rows.map(({ endpoint_id: endpointId }) => ({ endpointId, isRetry: false, count: 1, since }));
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
  const claim = (db: any) => claimDueDeliveries(db, asks, 120_000);
  const endedOf = (claims: Awaited<ReturnType<typeof claimDueDeliveries>>) =>
    claims.flatMap(({ claimed }) =>
      claimed.map((held) => ({
        claim: held,
        attempt,
        after: { status: 'succeeded' } as const,
        proves: true,
        slotMs: 20,
      })),
    );
  const inTransaction = (db: any): any => ({ sqlTransaction: (work: (tx: any) => unknown) => work(db) });
  return [
    ['create a room: 10 deliveries', (db) => insertRooms(db, [{ tenant, room, created: roomCreated(tenant, room) }])],
    ['claim 4 deliveries', claim],
    ['settle 4 deliveries', (db, claims) => settleDeliveries(db, endedOf(claims)), claim],
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
    ['sweep: parked deliveries to free', (db) => freeParkedDeliveries(db, null, 500)],
    ['scan: endpoints with newly due deliveries', (db) => scanNewlyDue(db, null, 5000)],
    ['scan: endpoints with a backlog', (db) => scanBacklogs(db, '', 500)],
    ['sweep: move the floor', (db) => moveDueFloor(inTransaction(db), 'deliveries', { checkEveryMs: Infinity })],
    ['full check, every 10 minutes', (db) => moveDueFloor(inTransaction(db), 'deliveries', { checkEveryMs: 0 })],
    ['sweep: leases that ran out', (db) => endExpiredLeases(db, 120_000, 100, { from: leasesFrom })],
    ['sweep: first lease', (db) => firstLeaseExpiry(db, leasesFrom)],
    ['sweep: runs that are too old', (db) => expireRuns(db, RUN_AGE_MS_MAX, 100, runsFrom)],
    ['scan: operations', (db) => findDueOperations(db, 1000)],
    ['retention: 500 deliveries', (db) => deleteOldDeliveries(db, 30, 500)],
    [
      'retention: 500 events',
      (db) => deleteOldEvents(db, 30, 500, lastOpen),
      // Their deliveries are deleted first.
      (db) => deleteOldDeliveries(db, 30, 500),
    ],
    ['metric: due rows', (db) => readBacklogs(db)],
    ['sweep: operations without an attempt left', (db) => settleExhaustedOperation(db)],
  ];
}
