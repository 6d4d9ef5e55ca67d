import type { RoomStatus, Tenant } from '@callplane/core';
import {
  findOperationsOf,
  findParticipants,
  findRooms,
  insertParticipantsIfOpen,
  insertRooms,
  isDatabaseUnavailable,
  type DueEndpoint,
  type ParticipantToInsert,
  type RoomToInsert,
  type TypedSql,
  type ParticipantRequest,
  type RowRequest,
} from '@callplane/db';
import { Batches, ONE_QUEUE, type BatchSettings } from '@callplane/runtime';
import pLimit from 'p-limit';

const REQUESTS_PER_STATEMENT_MAX = 64;
const STATEMENTS_AT_ONCE = 2;
const LOCKED_ROOMS_AT_ONCE = 4;
/** Maximum number of requests of a kind that wait for their statement: in all, and of one environment. */
export const WAITING_MAX = { all: 4_000, perKey: 1_000 };
/** How long a request waits for its statement, in milliseconds: as long as for a connection. */
export const WAIT_MS_MAX = 3_000;

interface Connections {
  writes: TypedSql;
  reads: TypedSql;
  /** Wakes the deliveries that a statement has written: once for all of its requests. */
  wake: (deliveries: readonly DueEndpoint[]) => unknown;
}

export type SharedStatements = ReturnType<typeof sharedStatements>;

/**
 * The statements that concurrent requests share (docs/decisions/0003). Each function gets the values of one request. It
 * rejects with OverloadedError if too many requests wait.
 */
export function sharedStatements({ writes, reads, wake }: Connections) {
  const all: { readonly waiting: number }[] = [];
  const share = <Item extends { tenant: Tenant }, Result>(
    run: (items: Item[]) => Promise<readonly (Result | Promise<Result>)[]>,
  ) => {
    const batches = new Batches<Item, Result>({
      ...SHARED,
      run: (_key, items) => run(items),
      atOnce: STATEMENTS_AT_ONCE,
      tenantOf: ({ tenant }) => tenant.environmentId,
    });
    all.push(batches);
    return (item: Item) => batches.add(ONE_QUEUE, item);
  };

  // One statement at a time for each room, which waits for its lock.
  const inLockedRooms = new Batches<ParticipantToInsert, RoomStatus | null>({
    ...SHARED,
    run: async (_roomId, inserts) => {
      const statuses = await insertParticipantsIfOpen(writes, inserts, { skipLocked: false });
      // Without SKIP LOCKED, an unlocked room was deleted after the statement had begun.
      return statuses.map((status) => (status === 'busy' ? null : status));
    },
    limit: pLimit(LOCKED_ROOMS_AT_ONCE),
  });
  all.push(inLockedRooms);
  const insertIfOpen = async (inserts: ParticipantToInsert[]) => {
    const statuses = await insertParticipantsIfOpen(writes, inserts, { skipLocked: true });
    return inserts.map((insert, at) => {
      const status = statuses[at] ?? null;
      return status === 'busy' ? inLockedRooms.add(insert.participant.roomId, insert) : status;
    });
  };

  const insertAndWake = async (rooms: RoomToInsert[]) => {
    const deliveries = await insertRooms(writes, rooms);
    void wake(deliveries.flat());
    return rooms.map(() => undefined);
  };

  return {
    /** The number of requests that wait for their statement. */
    get waiting() {
      return all.reduce((sum, { waiting }) => sum + waiting, 0);
    },
    insertRoom: share(insertAndWake),
    /** Answers the status of the room (nothing was written unless it is open); null if there is no such room. */
    insertParticipantIfOpen: share(insertIfOpen),
    findRoom: share((requests: RowRequest[]) => findRooms(reads, requests)),
    findParticipant: share((requests: ParticipantRequest[]) => findParticipants(reads, requests)),
    findRoomOperation: share((requests: RowRequest[]) => findOperationsOf(reads, 'room.end', requests)),
    findParticipantOperation: share((requests: RowRequest[]) =>
      findOperationsOf(reads, 'participant.remove', requests),
    ),
  };
}

const SHARED: Pick<BatchSettings<unknown, unknown>, 'sizeMax' | 'waitingMax' | 'waitMsMax' | 'runsAlone'> = {
  sizeMax: REQUESTS_PER_STATEMENT_MAX,
  waitingMax: WAITING_MAX,
  waitMsMax: WAIT_MS_MAX,
  // If PostgreSQL is unavailable, the statement may have committed. Any other error has rolled it back.
  runsAlone: (error) => !isDatabaseUnavailable(error),
};
