import { randomUUID } from 'node:crypto';
import { feedIdAt } from '@callplane/core';
import { nodeLoads, publishTracks } from '@callplane/db';
import { publishRoomChanged, type JobProducer, type RoomBus, type RoomMessage } from '@callplane/queue';
import { ArrivalLimits } from '../../../apps/signaling/src/arrivals/limits.js';
import type { VerificationKeys } from '../../../apps/signaling/src/arrivals/token.js';
import { Gateway, type Deps } from '../../../apps/signaling/src/gateway.js';
import { forwardLimits } from '../../../apps/signaling/src/media/forwards.js';
import { MediaPlaces, type MediaPlace } from '../../../apps/signaling/src/media/places.js';
import { StreamRates } from '../../../apps/signaling/src/requests/stream-rates.js';
import { signalingMetrics } from '../../../apps/signaling/src/metrics.js';
import { systemClock } from '../../../packages/runtime/src/index.js';
import { SimSocket, type SocketClient } from '../ports/sockets.js';
import { running, type SimProcess } from '../processes.js';
import { PUBLIC_KEY, TOKENS, noMetrics, openDatabase, type Parts } from './tasks.js';
import type { SimRedis } from '../ports/redis.js';

const UNLIMITED = { perSecond: 0, burst: 1 };
const UNLIMITED_PACE = { perMinute: 0, burst: 1 };

export interface GatewayInstance {
  /** @returns null while the gateway drains. */
  connect(client: SocketClient): SimSocket | null;
  /** Writes a published track, as the gateway does after it has negotiated with the media server. */
  publish(sessionId: string): Promise<boolean>;
  /** As SIGTERM does. */
  drain(): Promise<void>;
  readonly isDraining: boolean;
  /** The sessions whose connections it holds. */
  readonly held: ReadonlySet<string>;
}

/** As apps/signaling/src/main.ts does, without HTTP, TLS and the negotiation of media. */
export function startGateway({ redis, media, databaseUrl, logger, world }: Parts): GatewayInstance {
  const process = running.getStore() as SimProcess;
  const database = openDatabase(databaseUrl);
  const producer = redis.producer();
  const instanceId = randomUUID();
  const metrics = signalingMetrics(noMetrics);
  const deps: Deps = {
    instanceId,
    database,
    databasePoolMax: 10,
    producer,
    bus: simRoomBus(redis, producer, instanceId),
    places: new MediaPlaces(media.nodes(), () => nodeLoads(database.sql), media.servers.length),
    forwardLimits: forwardLimits('20000-20099'),
    streamRates: new StreamRates(0),
    keys: { find: () => Promise.resolve(PUBLIC_KEY) } as unknown as VerificationKeys,
    tokens: TOKENS,
    turn: { stunUrls: [], turnUrls: [], secret: null, ttlSeconds: 3600 },
    rosterFullMax: 100,
    reconnectGraceSeconds: 15,
    pingIntervalSeconds: 10,
    connectionLimit: UNLIMITED,
    mediaNodeDeadSeconds: 5,
    requestLimits: { messages: UNLIMITED, metadata: UNLIMITED },
    arrivalLimits: new ArrivalLimits(
      { joins: UNLIMITED_PACE, resumptions: UNLIMITED_PACE, failures: UNLIMITED_PACE },
      { metrics, logger },
    ),
    metrics,
    logger,
    clock: systemClock,
  };
  const gateway = new Gateway(deps, openDatabase(databaseUrl, { poolMax: 1 }));
  let isDraining = false;
  let feeds = 0;
  return {
    get held() {
      return new Set([...gateway.sessions.all].flatMap(({ sessionId, client }) => (client === null ? [] : sessionId)));
    },
    get isDraining() {
      return isDraining;
    },
    connect(client) {
      if (isDraining) return null;
      const socket = new SimSocket(world, process, client);
      gateway.connections.accept(socket.sockets, '198.51.100.7');
      return socket;
    },
    async publish(sessionId) {
      const session = gateway.sessions.get(sessionId);
      const publisher = session?.media.publisher as unknown as { place(): MediaPlace | null } | undefined;
      const { node } = publisher?.place() ?? {};
      const server = media.servers.find(({ id }) => id === node?.id);
      if (session === undefined || server === undefined) return false;
      const { held, roomId } = session;
      feeds += 1;
      const own = `${sessionId}-${held.connection}-${feeds}`;
      const feedId = media.servers.length > 1 ? feedIdAt(own, server.id) : own;
      server.publish(roomId, sessionId, feedId);
      // Janus would end the feed of a gateway that does not come so far.
      let isWritten = false;
      process.onDeath.push(() => isWritten || server.end(roomId, feedId));
      const track = { trackId: 'a', kind: 'audio', source: 'microphone', muted: false, feedId, mid: '0' } as const;
      const { written, deliveries } = await publishTracks(database, held, [track], systemClock.now());
      isWritten = written;
      // Otherwise the gateway would unpublish the track of a session that was resumed.
      Object.defineProperty(session.media.publisher, 'isAnnounced', { get: () => true, configurable: true });
      if (!written) server.end(roomId, feedId);
      void producer.wakeDeliveries(deliveries);
      void publishRoomChanged(producer.redis, roomId, null);
      return written;
    },
    async drain() {
      isDraining = true;
      await gateway.close();
    },
  };
}

interface Payload {
  type: string;
  from?: string;
  message: RoomMessage;
  kind?: string;
  report?: unknown;
  range: { version: number | null };
}

/** The room bus of the process that runs, as packages/queue has it, on the model of Redis. */
function simRoomBus(redis: SimRedis, producer: JobProducer, instanceId: string): RoomBus {
  const ends = new Map<string, () => void>();
  const channelOf = (roomId: string): string => `callplane:room:${roomId}`;
  const publish = (roomId: string, payload: object): Promise<boolean> =>
    producer.redis.publish(channelOf(roomId), JSON.stringify({ ...payload, from: instanceId })).then(
      () => true,
      () => false,
    );
  const bus: Omit<RoomBus, 'close'> = {
    get isListening() {
      return !redis.isAway;
    },
    refusal: null,
    subscribe(roomId, handlers) {
      ends.get(roomId)?.();
      const receive = (text: string): void => {
        const { from = '', type, range, message, kind = '', report } = JSON.parse(text) as Payload;
        if (from === instanceId) return;
        if (type === 'message') handlers.message(message);
        else if (type === 'report') handlers.report?.(kind, report, from);
        else handlers.changed(range.version);
      };
      ends.set(roomId, redis.subscribe(channelOf(roomId), receive));
    },
    unsubscribe(roomId) {
      ends.get(roomId)?.();
      ends.delete(roomId);
    },
    publishChanged: (roomId, version) => publish(roomId, { type: 'changed', range: { version } }),
    publishMessage: (roomId, message) => publish(roomId, { type: 'message', message }),
    publishReport: (roomId, kind, report) => publish(roomId, { type: 'report', kind, report }),
  };
  return bus as unknown as RoomBus;
}
