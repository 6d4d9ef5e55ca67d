import { createHash, randomBytes } from 'node:crypto';
import { newId, PERMISSIONS, type RoomStatus, type Tenant } from '@callplane/core';
import {
  execute,
  createTestDatabase,
  inviteTestParticipant,
  joinOne,
  PATIENT_DEADLINES,
  roomRow,
  stopAtEnd,
} from '@callplane/testing';
import { acceptParticipantRemoval } from '../operations/participant-removal.js';
import { acceptRoomEnd } from '../operations/room-end.js';
import { Database } from '../client/database.js';
import { createEnvironment, createProject } from '../api-keys/api-keys.repository.js';
import { readRoomChanges, toSession } from './room-changes.js';
import type { JoinInput, TrackState } from './session.js';

export const NOON = new Date('2030-01-01T12:00:00.000Z');
export const hashOf = (secret: string) => new Uint8Array(createHash('sha256').update(secret).digest());

export interface Invited {
  participantId: string;
  tokenId: string;
}

export interface StoredEvent {
  type: string;
  sequence: number;
  data: any;
}

export type TestRooms = Awaited<ReturnType<typeof startTestRooms>>;

export async function startTestRooms({ poolMax = 20 } = {}) {
  const { url } = await createTestDatabase();
  const database = new Database({ url, poolMax, deadlines: PATIENT_DEADLINES });
  stopAtEnd(() => database.close());
  const { prisma } = database;
  const tenant = await createTenant(database);

  async function invite(roomId: string): Promise<Invited> {
    const { roomStatus, ...invited } = await inviteTestParticipant(database.sql, tenant, roomId, NOON);
    if (roomStatus === null) throw new Error(`no room ${roomId}`);
    return invited;
  }
  const inputOf = (roomId: string, { participantId, tokenId }: Invited, more: Partial<JoinInput> = {}): JoinInput => ({
    tenant,
    roomId,
    participantId,
    tokenId,
    permissions: [...PERMISSIONS],
    resumeSecretHash: hashOf('secret'),
    instanceId: 'instance-1',
    mediaNodeId: null,
    ...more,
  });
  const join = (roomId: string, invited: Invited, more?: Partial<JoinInput>) =>
    joinOne(database, inputOf(roomId, invited, more), NOON);

  return {
    database,
    databaseUrl: url,
    tenant,
    async newRoom({
      maxParticipants = 100,
      status = 'created',
      ...more
    }: { maxParticipants?: number; status?: RoomStatus; record?: object; encryption?: string } = {}): Promise<string> {
      const startedAt = status === 'created' ? null : NOON;
      const data = roomRow(tenant, { status, maxParticipants, createdAt: NOON, startedAt, ...more });
      return (await prisma.room.create({ data })).id;
    },
    invite,
    inputOf,
    join,
    /** Invites and joins; `secret` is the session's resume secret. */
    async enter(roomId: string, more?: Partial<JoinInput>) {
      const invited = await invite(roomId);
      const secret = randomBytes(16).toString('hex');
      const joined = await join(roomId, invited, { resumeSecretHash: hashOf(secret), ...more });
      if (joined.outcome !== 'joined') throw new Error(joined.outcome);
      const { sessionId, connection } = joined;
      return { ...joined, ...invited, secret, held: { sessionId, connection } };
    },
    remove: (roomId: string, participantId: string) =>
      acceptParticipantRemoval(database, tenant, roomId, participantId, NOON),
    end: (roomId: string) => acceptRoomEnd(database, tenant, roomId, NOON),
    /** The room with all its live sessions. */
    async snapshot(roomId: string) {
      const changes = (await readRoomChanges(database.sql, [{ roomId, after: null }])).get(roomId);
      if (changes === undefined) throw new Error(`no room ${roomId}`);
      return { ...changes, sessions: changes.sessions.map((tuple) => toSession(roomId, tuple)) };
    },
    /** The room's events, by sequence number. */
    async events(roomId: string): Promise<StoredEvent[]> {
      const rows = await prisma.event.findMany({ where: { roomId }, orderBy: { sequence: 'asc' } });
      return rows.map(({ type, sequence, body }) => ({ type, sequence: sequence!, data: JSON.parse(body).data }));
    },
    sessions: (roomId: string) =>
      prisma.participantSession.findMany({
        where: { roomId },
        select: { id: true, endReason: true, participantId: true },
        orderBy: { id: 'asc' },
      }),
    sql: (statement: string): Promise<unknown> => execute(database, statement),
  };
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

export function track(trackId: string, more: Partial<TrackState> = {}): TrackState {
  return { trackId, kind: 'audio', source: 'microphone', muted: false, feedId: 'feed-1', mid: '0', ...more };
}
