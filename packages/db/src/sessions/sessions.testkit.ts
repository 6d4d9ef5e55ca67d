import { createHash, randomBytes } from 'node:crypto';
import { newId, PERMISSIONS, type RoomStatus, type Tenant } from '@callplane/core';
import { createTestDatabase, inviteTestParticipant, joinOne, PATIENT_DEADLINES, stopAtEnd } from '@callplane/testing';
import { acceptParticipantRemoval, acceptRoomEnd } from '../operations/operations.repository.js';
import { Database } from '../client/database.js';
import { createEnvironment, createProject } from '../tenants/tenants.repository.js';
import { readRoomChanges, type RoomChanges } from './room-changes.js';
import { toSession } from './session-tuple.js';
import type { JoinOutcome } from './join-sessions.js';
import type { JoinInput, SessionState, TrackState } from './session.js';

export const NOON = new Date('2030-01-01T12:00:00.000Z');
export const hashOf = (secret: string) => new Uint8Array(createHash('sha256').update(secret).digest());

export interface Invited {
  participantId: string;
  tokenId: string;
}
type Joined = Extract<JoinOutcome, { outcome: 'joined' }>;

export interface StoredEvent {
  type: string;
  sequence: number;
  data: any;
}

/** A room with all its live sessions. */
type RoomSnapshot = Omit<RoomChanges, 'sessions'> & { sessions: SessionState[] };

export interface TestRooms {
  database: Database;
  databaseUrl: string;
  tenant: Tenant;
  newRoom(options?: { maxParticipants?: number; status?: RoomStatus }): Promise<string>;
  invite(roomId: string): Promise<Invited>;
  inputOf(roomId: string, invited: Invited, more?: Partial<JoinInput>): JoinInput;
  join(roomId: string, invited: Invited, more?: Partial<JoinInput>): Promise<JoinOutcome>;
  /** Invites and joins; `secret` is the session's resume secret. */
  enter(
    roomId: string,
    more?: Partial<JoinInput>,
  ): Promise<Joined & Invited & { secret: string; held: { sessionId: string; connection: number } }>;
  snapshot(roomId: string): Promise<RoomSnapshot>;
  remove(roomId: string, participantId: string): ReturnType<typeof acceptParticipantRemoval>;
  end(roomId: string): ReturnType<typeof acceptRoomEnd>;
  /** The room's events, by sequence number. */
  events(roomId: string): Promise<StoredEvent[]>;
  sessions(roomId: string): Promise<{ id: string; endReason: string | null; participantId: string }[]>;
  sql(statement: string): Promise<unknown>;
}

export async function startTestRooms({ poolMax = 20 } = {}): Promise<TestRooms> {
  const { url } = await createTestDatabase();
  const database = new Database({ url, poolMax, deadlines: PATIENT_DEADLINES });
  stopAtEnd(() => database.close());
  const { prisma } = database;
  const tenant = await createTenant(database);

  const rooms: TestRooms = {
    database,
    databaseUrl: url,
    tenant,
    async newRoom({ maxParticipants = 100, status = 'created' } = {}) {
      const id = newId('room');
      await prisma.room.create({
        data: {
          id,
          environmentId: tenant.environmentId,
          name: 'Room',
          metadata: {},
          status,
          maxParticipants,
          createdAt: NOON,
          startedAt: status === 'created' ? null : NOON,
        },
      });
      return id;
    },
    async invite(roomId) {
      const { roomStatus, ...invited } = await inviteTestParticipant(database.sql, tenant, roomId, NOON);
      if (roomStatus === null) throw new Error(`no room ${roomId}`);
      return invited;
    },
    inputOf: (roomId, { participantId, tokenId }, more = {}) => ({
      tenant,
      roomId,
      participantId,
      tokenId,
      permissions: [...PERMISSIONS],
      resumeSecretHash: hashOf('secret'),
      instanceId: 'instance-1',
      mediaNodeId: null,
      ...more,
    }),
    join: (roomId, invited, more) => joinOne(database, rooms.inputOf(roomId, invited, more), NOON),
    async enter(roomId, more) {
      const invited = await rooms.invite(roomId);
      const secret = randomBytes(16).toString('hex');
      const joined = await rooms.join(roomId, invited, { resumeSecretHash: hashOf(secret), ...more });
      if (joined.outcome !== 'joined') throw new Error(joined.outcome);
      const { sessionId, connection } = joined;
      return { ...joined, ...invited, secret, held: { sessionId, connection } };
    },
    remove: (roomId, participantId) => acceptParticipantRemoval(database, tenant, roomId, participantId, NOON),
    end: (roomId) => acceptRoomEnd(database, tenant, roomId, NOON),
    ...readersOf(database),
  };
  return rooms;
}

async function createTenant({ prisma }: Database): Promise<Tenant> {
  const tenant: Tenant = { projectId: newId('project'), environmentId: newId('environment') };
  await createProject(prisma, { id: tenant.projectId, name: 'Test', createdAt: NOON });
  await createEnvironment(prisma, {
    id: tenant.environmentId,
    projectId: tenant.projectId,
    name: 'test',
    createdAt: NOON,
  });
  return tenant;
}

function readersOf({ prisma, sql }: Database): Pick<TestRooms, 'snapshot' | 'events' | 'sessions' | 'sql'> {
  return {
    async snapshot(roomId) {
      const changes = (await readRoomChanges(sql, [{ roomId, after: null }])).get(roomId);
      if (changes === undefined) throw new Error(`no room ${roomId}`);
      return { ...changes, sessions: changes.sessions.map((tuple) => toSession(roomId, tuple)) };
    },
    async events(roomId) {
      const rows = await prisma.event.findMany({ where: { roomId }, orderBy: { sequence: 'asc' } });
      return rows.map(({ type, sequence, body }) => ({ type, sequence: sequence!, data: JSON.parse(body).data }));
    },
    sessions: (roomId) =>
      prisma.participantSession.findMany({
        where: { roomId },
        select: { id: true, endReason: true, participantId: true },
        orderBy: { id: 'asc' },
      }),
    sql: (statement) => prisma.$executeRawUnsafe(statement),
  };
}

export function track(trackId: string, more: Partial<TrackState> = {}): TrackState {
  return { trackId, kind: 'audio', source: 'microphone', muted: false, feedId: 'feed-1', mid: '0', ...more };
}
