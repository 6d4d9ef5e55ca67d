import { createHash, randomUUID } from 'node:crypto';
import type { Tenant } from '@callplane/core';
import {
  beat,
  endSessions,
  joinSessions,
  markDisconnected,
  publishTracks,
  readRoomChanges,
  resumeSessions,
  type HeldSession,
  type JoinOutcome,
  type ResumeOutcome,
} from '@callplane/db';
import { publishRoomChanged } from '@callplane/queue';
import {
  noteDisconnections,
  noteJoins,
  noteLeaves,
  noteResumptions,
} from '../../../apps/signaling/src/sessions/session-transitions.js';
import { Repeating, systemClock } from '../../../packages/runtime/src/index.js';
import type { Parts } from '../fleet.js';
import { openDatabase } from './tasks.js';

const BEAT_MS = 2000;
/** As the gateway's resync of rooms without a notice. */
const RESYNC_MS = 5000;

interface Member extends HeldSession {
  roomId: string;
  participantId: string;
}

export interface Joining {
  readonly tenant: Tenant;
  readonly roomId: string;
  readonly participantId: string;
  readonly tokenId: string;
  readonly secret: string;
}

export interface GatewayInstance {
  join(joining: Joining): Promise<JoinOutcome>;
  resume(sessionId: string, secret: string): Promise<ResumeOutcome>;
  publish(sessionId: string): Promise<boolean>;
  /** The client says that it leaves. */
  leave(sessionId: string): Promise<void>;
  /** The connection of the client breaks. */
  lose(sessionId: string): Promise<void>;
  /** The sessions whose connections it holds. */
  readonly members: ReadonlyMap<string, Member>;
}

const hashOf = (secret: string): Uint8Array => new Uint8Array(createHash('sha256').update(secret).digest());

/** Connections of participants, with the writes of apps/signaling for them. Its sockets and batches are not simulated. */
export function startGateway({ redis, media, databaseUrl, logger }: Parts): GatewayInstance {
  const database = openDatabase(databaseUrl);
  const producer = redis.producer();
  const instanceId = randomUUID();
  const members = new Map<string, Member>();
  const versions = new Map<string, number>();
  const subscriptions = new Map<string, () => void>();
  const fail = (error: unknown): void => logger.warn('gateway waits for PostgreSQL', { error });

  const notify = (roomId: string, version: number | null) => void publishRoomChanged(producer.redis, roomId, version);
  const disconnect = async (held: readonly HeldSession[]): Promise<void> => {
    const sinceMs = performance.now();
    const { marked } = await markDisconnected(database, held);
    noteDisconnections(logger, marked, sinceMs);
  };
  /** Lets go of the sessions that the room does not have any more. */
  const follow = async (roomId: string): Promise<void> => {
    const changes = (await readRoomChanges(database.sql, [{ roomId, after: null }])).get(roomId);
    if (changes === undefined) return;
    versions.set(roomId, changes.version);
    const isOpen = changes.room.status === 'created' || changes.room.status === 'active';
    const mine = [...members.values()].filter((member) => member.roomId === roomId);
    const present = new Set(JSON.stringify(changes.sessions).match(/sess_\w+/g) ?? []);
    const gone = mine.filter(({ sessionId }) => !isOpen || !present.has(sessionId));
    for (const { sessionId } of gone) members.delete(sessionId);
    if (gone.length > 0) {
      logger.info('connections end', { count: gone.length });
      await disconnect(gone);
    }
    if (mine.length === gone.length) {
      subscriptions.get(roomId)?.();
      subscriptions.delete(roomId);
    }
  };
  const hold = (member: Member): void => {
    members.set(member.sessionId, member);
    if (subscriptions.has(member.roomId)) return;
    const heard = (): void => void follow(member.roomId).catch(fail);
    subscriptions.set(member.roomId, redis.subscribe(`callplane:room:${member.roomId}`, heard));
  };
  const repeat = (intervalMs: number, work: () => Promise<void>): void => void new Repeating(intervalMs, work, fail);
  repeat(BEAT_MS, () => beat(database.sql, instanceId));
  repeat(RESYNC_MS, async () => {
    for (const roomId of new Set([...members.values()].map((member) => member.roomId))) await follow(roomId);
  });
  const one = async <T>(results: Promise<readonly T[]>): Promise<T> => (await results)[0] as T;
  return {
    members,
    async join({ tenant, roomId, participantId, tokenId, secret }) {
      const input = {
        tenant,
        roomId,
        participantId,
        tokenId,
        permissions: ['room:join', 'audio:publish'] as const,
        resumeSecretHash: hashOf(secret),
        instanceId,
        mediaNodeId: media.id,
      };
      const sinceMs = performance.now();
      const outcome = await one(joinSessions(database, roomId, [input], systemClock.now()));
      noteJoins(logger, roomId, [input], [outcome], sinceMs);
      if (outcome.outcome === 'joined') {
        hold({ sessionId: outcome.sessionId, connection: outcome.connection, roomId, participantId });
        void producer.wakeDeliveries(outcome.deliveries);
        notify(roomId, outcome.state.version);
        // A change between the commit and here has sent its notice already.
        await follow(roomId);
      }
      return outcome;
    },
    async resume(sessionId, secret) {
      const sinceMs = performance.now();
      const outcome = await one(
        resumeSessions(database, [{ sessionId, resumeSecretHash: hashOf(secret), instanceId }]),
      );
      noteResumptions(logger, [outcome], sinceMs);
      if (outcome.outcome === 'resumed') {
        const { roomId, participantId, connection } = outcome;
        hold({ sessionId, connection, roomId, participantId });
        notify(roomId, null);
        await follow(roomId);
      }
      return outcome;
    },
    async publish(sessionId) {
      const member = members.get(sessionId);
      if (member === undefined) return false;
      const feedId = `${sessionId}-1`;
      media.publish(member.roomId, feedId);
      const track = { trackId: 'a', kind: 'audio', source: 'microphone', muted: false, feedId, mid: '0' } as const;
      const { written, deliveries } = await publishTracks(database, member, [track], systemClock.now());
      void producer.wakeDeliveries(deliveries);
      notify(member.roomId, null);
      return written;
    },
    async leave(sessionId) {
      const member = members.get(sessionId);
      if (member === undefined) return;
      members.delete(sessionId);
      const sinceMs = performance.now();
      const left = await endSessions(database, member.roomId, [member], 'left', systemClock.now());
      noteLeaves(logger, member.roomId, [member], left, sinceMs);
      const { deliveries } = left;
      void producer.wakeDeliveries(deliveries);
      notify(member.roomId, null);
    },
    async lose(sessionId) {
      const member = members.get(sessionId);
      if (member === undefined) return;
      members.delete(sessionId);
      await disconnect([member]);
      notify(member.roomId, null);
    },
  };
}
