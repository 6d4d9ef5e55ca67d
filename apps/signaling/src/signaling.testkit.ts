import { randomUUID } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { newId, parseMasterKeys, PERMISSIONS, type Permission } from '@callplane/core';
import {
  acceptParticipantRemoval,
  acceptRoomEnd,
  Database,
  ensureSigningKey,
  listRegisteredNodes,
  loadSigningKeys,
  loadVerificationKeys,
  nodeLoads,
} from '@callplane/db';
import { MediaNodes } from '@callplane/media';
import type { ProtocolVersion } from '@callplane/protocol';
import { JobProducer, publishRoomChanged, RoomBus } from '@callplane/queue';
import { createHealth, createLogger, createMetrics, redisEvents, Repeating, systemClock } from '@callplane/runtime';
import {
  connectionTo,
  createTestDatabase,
  createTestTenant,
  gatewayUrlOf,
  insertTestParticipant,
  startTestRedis,
  stopAtEnd,
  TEST_ENCRYPTION_KEYS,
  type TestServer,
  type TestTenant,
  PATIENT_DEADLINES,
  PATIENT_REDIS,
} from '@callplane/testing';
import jwt from 'jsonwebtoken';
import { connectClient, type ServerMessages, type TestClient } from './client.testkit.js';
import { ArrivalLimits, type ArrivalPaces } from './admission/arrival-limits.js';
import { createCallerAddress } from './connections/caller-address.js';
import type { ConnectionSettings } from './connections/connection.js';
import { acceptUpgrades } from './connections/upgrade.js';
import type { Deps } from './deps.js';
import { Gateway } from './gateway.js';
import { MediaPlaces } from './media/placement/media-places.js';
import { addSignalingGauges, signalingMetrics } from './metrics.js';
import { listen } from './server.js';
import { VerificationKeys } from './admission/verification-keys.js';

interface TestNode {
  id: string;
  url: string;
  apiSecret: string;
  adminKey: string;
}

interface InstanceOptions {
  limits?: Partial<Omit<ConnectionSettings, 'pingIntervalMs'>>;
  arrivals?: Partial<ArrivalPaces>;
  reconnectGraceSeconds?: number;
  rosterFullMax?: number;
  pingIntervalSeconds?: number;
  nodes?: TestNode[];
  /** Reads the registry of media servers this often, with these secrets. */
  registry?: { everyMs: number; apiSecret: string; adminKey: string };
  mediaNodeDeadSeconds?: number;
  resyncEveryMs?: number;
  allowedOrigins?: string[];
  connectionsMax?: number;
  trustProxy?: string[];
  turn?: Partial<Deps['turn']>;
}

/** A gateway instance in this process. */
export interface TestInstance {
  url: string;
  deps: Deps;
  gateway: Gateway;
  nodes: MediaNodes;
  /** All log lines so far. */
  log(): string;
  /** The metrics in the text that a scrape returns. */
  metrics(): Promise<string>;
  /** Drains and closes the instance as SIGTERM does. Idempotent. */
  close(): Promise<void>;
}

export interface Invited {
  participantId: string;
  tokenId: string;
  token: string;
}

export interface Joined extends Invited {
  client: TestClient;
  welcome: ServerMessages['welcome'];
}

interface StoredEvent {
  type: string;
  sequence: number;
  data: any;
}

/** PostgreSQL, Redis and a tenant for one test file, and the gateways in front of them. */
export interface TestSignaling {
  databaseUrl: string;
  database: Database;
  redis: TestServer;
  tenant: TestTenant;
  start(options?: InstanceOptions): Promise<TestInstance>;
  newRoom(options?: { maxParticipants?: number }): Promise<string>;
  invite(roomId: string, options?: InviteOptions): Promise<Invited>;
  /** Invites a participant, connects and joins. */
  enter(
    url: string,
    roomId: string,
    options?: InviteOptions & { autoSubscribe?: boolean; protocol?: ProtocolVersion },
  ): Promise<Joined>;
  join(url: string, invited: Invited, more?: object, protocol?: ProtocolVersion): Promise<Joined>;
  resume(
    url: string,
    welcome: ServerMessages['welcome'],
    more?: object,
    protocol?: ProtocolVersion,
  ): Promise<Joined['welcome'] & { client: TestClient }>;
  /** Does what the API does when it removes a participant: the accepting transaction and the notice. */
  remove(roomId: string, participantId: string, notice?: boolean): Promise<void>;
  /** Does what the API does when it ends a room: the accepting transaction and the notice. */
  end(roomId: string, notice?: boolean): Promise<void>;
  events(roomId: string): Promise<StoredEvent[]>;
  /** The events of one participant in short form: `joined`, `left removed`, … */
  story(roomId: string, participantId: string): Promise<string[]>;
  /** Stops the instances. Call it in `afterAll`, while Jest can still load modules. */
  close(): Promise<void>;
}

interface InviteOptions {
  permissions?: Permission[];
  name?: string;
  metadata?: Record<string, unknown>;
  /** Overrides claims of the token. */
  claims?: object;
}

const UNLIMITED = { perSecond: 0, burst: 1 };
const UNLIMITED_PACE = { perMinute: 0, burst: 1 };

export async function startTestSignaling({ databaseUrl }: { databaseUrl?: string } = {}): Promise<TestSignaling> {
  const [url, redis] = await Promise.all([
    databaseUrl ?? createTestDatabase().then((database) => database.url),
    startTestRedis(),
  ]);
  const database = new Database({
    ...connectionTo(url),
    poolMax: 10,
    deadlines: PATIENT_DEADLINES,
    onConnectionError: () => undefined,
  });
  const producer = new JobProducer(redis.url, { onLost: () => undefined, onReady: () => undefined }, PATIENT_REDIS);
  stopAtEnd(() => Promise.all([producer.close(), database.close()]));
  const tenant = await createTestTenant(database);
  const masterKeys = parseMasterKeys([TEST_ENCRYPTION_KEYS]);
  await ensureSigningKey(database, masterKeys, new Date());
  const { signer } = await loadSigningKeys(database, masterKeys, new Date());

  const instances: TestInstance[] = [];
  const kit: TestSignaling = {
    databaseUrl: url,
    database,
    redis,
    tenant,
    async start(options = {}) {
      const instance = await startInstance({ databaseUrl: gatewayUrlOf(url), redisUrl: redis.url }, options);
      instances.push(instance);
      return instance;
    },
    async close() {
      await Promise.all(instances.map((instance) => instance.close()));
    },
    async newRoom({ maxParticipants = 100 } = {}) {
      const id = newId('room');
      await database.prisma.room.create({
        data: {
          id,
          environmentId: tenant.environmentId,
          name: 'Room',
          metadata: {},
          status: 'created',
          maxParticipants,
          createdAt: new Date(),
        },
      });
      return id;
    },
    async invite(roomId, { permissions = [...PERMISSIONS], name = 'Ada', metadata = {}, claims = {} } = {}) {
      const [participantId, tokenId] = [newId('participant'), newId('token')];
      const now = new Date();
      const issuedSeconds = Math.floor(now.getTime() / 1000);
      const status = await insertTestParticipant(database.sql, tenant, {
        id: participantId,
        roomId,
        externalId: null,
        name,
        metadata,
        role: 'participant',
        createdAt: now,
        token: { id: tokenId, permissions, expiresAt: new Date((issuedSeconds + 600) * 1000) },
      });
      if (status === null) throw new Error(`room ${roomId} not found`);
      const token = jwt.sign(
        {
          iss: 'callplane',
          aud: 'callplane-signaling',
          sub: participantId,
          jti: tokenId,
          iat: issuedSeconds,
          nbf: issuedSeconds,
          exp: issuedSeconds + 600,
          projectId: tenant.projectId,
          environmentId: tenant.environmentId,
          roomId,
          name,
          permissions,
          ...claims,
        },
        signer.privateKey,
        { algorithm: 'ES256', keyid: signer.kid },
      );
      return { participantId, tokenId, token };
    },
    async enter(instanceUrl, roomId, { autoSubscribe, protocol, ...options } = {}) {
      return kit.join(
        instanceUrl,
        await kit.invite(roomId, options),
        autoSubscribe === undefined ? {} : { autoSubscribe },
        protocol,
      );
    },
    async join(instanceUrl, invited, more = {}, protocol = 1) {
      const client = await connectClient(instanceUrl, { protocol });
      client.send({ type: 'join', token: invited.token, ...more });
      return { ...invited, client, welcome: await client.until('welcome') };
    },
    async resume(instanceUrl, { sessionId, resumeSecret }, more = {}, protocol = 1) {
      const client = await connectClient(instanceUrl, { protocol });
      client.send({ type: 'resume', sessionId, resumeSecret, ...more });
      return { ...(await client.until('welcome')), client };
    },
    async remove(roomId, participantId, notice = true) {
      const accepted = await acceptParticipantRemoval(database, tenant, roomId, participantId, new Date());
      if (notice) await publishRoomChanged(producer.redis, roomId, accepted?.roomVersion ?? null);
    },
    async end(roomId, notice = true) {
      const accepted = await acceptRoomEnd(database, tenant, roomId, new Date());
      if (notice) await publishRoomChanged(producer.redis, roomId, accepted?.roomVersion ?? null);
    },
    async events(roomId) {
      const rows = await database.prisma.event.findMany({ where: { roomId }, orderBy: { sequence: 'asc' } });
      return rows.map(({ type, sequence, body }) => ({ type, sequence: sequence!, data: JSON.parse(body).data }));
    },
    async story(roomId, participantId) {
      const events = await kit.events(roomId);
      return events
        .filter(({ data }) => data.participant?.id === participantId)
        .map(({ type, data }) => [type.split('.')[1], data.reason ?? data.track?.trackId].filter(Boolean).join(' '));
    },
  };
  return kit;
}

async function startInstance(
  servers: { databaseUrl: string; redisUrl: string },
  options: InstanceOptions,
): Promise<TestInstance> {
  const written: string[] = [];
  const stream = new PassThrough();
  stream.on('data', (chunk: Buffer) => written.push(chunk.toString()));
  const logger = createLogger({ LOG_LEVEL: 'debug', LOG_FORMAT: 'json' }, 'signaling', stream);
  const instanceId = `test-${randomUUID()}`;
  const databaseSettings = {
    ...connectionTo(servers.databaseUrl),
    deadlines: PATIENT_DEADLINES,
    onConnectionError: () => undefined,
  };
  const database = new Database({ ...databaseSettings, poolMax: 10 });
  const heartbeats = new Database({ ...databaseSettings, poolMax: 1 });
  const producer = new JobProducer(servers.redisUrl, redisEvents(logger, 'producer'), PATIENT_REDIS);
  const events = redisEvents(logger, 'rooms');
  const bus = new RoomBus({
    redisUrl: servers.redisUrl,
    instanceId,
    publisher: producer.redis,
    events: {
      ...events,
      onReady: () => {
        events.onReady();
        gateway.resync();
      },
    },
  });
  const nodes = MediaNodes.open({
    addresses: options.nodes ?? [],
    apiSecret: options.nodes?.[0]?.apiSecret ?? options.registry?.apiSecret ?? '',
    adminKey: options.nodes?.[0]?.adminKey ?? options.registry?.adminKey ?? '',
    random: Math.random,
    readRegistry: options.registry === undefined ? undefined : () => listRegisteredNodes(database.sql),
  });
  const registry =
    options.registry === undefined
      ? null
      : new Repeating(
          options.registry.everyMs,
          () => nodes.refresh(),
          (error) => logger.error('task failed', { error }),
        );
  const metrics = createMetrics({ app: 'signaling' });
  const measured = signalingMetrics(metrics);
  const deps: Deps = {
    instanceId,
    database,
    databasePoolMax: 10,
    producer,
    bus,
    places: new MediaPlaces(nodes, () => nodeLoads(database.sql)),
    keys: new VerificationKeys(() => loadVerificationKeys(database.prisma, new Date())),
    tokens: { issuer: 'callplane', audience: 'callplane-signaling' },
    turn: { stunUrls: [], turnUrls: [], secret: null, ttlSeconds: 3600, ...options.turn },
    rosterFullMax: options.rosterFullMax ?? 100,
    reconnectGraceSeconds: options.reconnectGraceSeconds ?? 15,
    pingIntervalSeconds: options.pingIntervalSeconds ?? 10,
    arrivalLimits: new ArrivalLimits(
      { joins: UNLIMITED_PACE, resumptions: UNLIMITED_PACE, failures: UNLIMITED_PACE, ...options.arrivals },
      { metrics: measured, logger },
    ),
    metrics: measured,
    logger,
    clock: systemClock,
  };
  const gateway = new Gateway(deps, heartbeats, {
    connections: {
      general: UNLIMITED,
      messages: UNLIMITED,
      metadata: UNLIMITED,
      ...options.limits,
    },
    mediaNodeDeadSeconds: options.mediaNodeDeadSeconds ?? 5,
    ...(options.resyncEveryMs === undefined ? {} : { resyncEveryMs: options.resyncEveryMs }),
  });
  addSignalingGauges(metrics, {
    connections: () => gateway.connections.count,
    sessions: () => gateway.sessions.count,
    welcomeBytes: () => gateway.welcomes.bytesInFlight,
    mediaNodes: () => nodes.all(),
  });
  let closing: Promise<void> | undefined;
  const health = createHealth(logger, {}, () => closing !== undefined);
  const listening = await listen(health, () => false, { host: '127.0.0.1', port: 0 });
  acceptUpgrades(listening.server, gateway.connections, {
    allowedOrigins: options.allowedOrigins ?? ['*'],
    connectionsMax: options.connectionsMax ?? 10_000,
    isDraining: () => closing !== undefined,
    callerAddress: createCallerAddress(options.trustProxy ?? []),
  });
  await Promise.all(nodes.all().map((node) => node.untilUp(60_000)));
  const close = async () => {
    await listening.close();
    await gateway.close();
    await registry?.close();
    await Promise.all([nodes.close(), bus.close(), producer.close(), heartbeats.close(), database.close()]);
  };
  const instance: TestInstance = {
    url: `http://127.0.0.1:${listening.port}`,
    deps,
    gateway,
    nodes,
    log: () => written.join(''),
    metrics: () => metrics.text(),
    close: () => (closing ??= close()),
  };
  stopAtEnd(instance.close);
  return instance;
}
