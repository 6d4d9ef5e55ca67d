import { newId, parseMasterKeys, PERMISSIONS, type Permission } from '@callplane/core';
import {
  acceptParticipantRemoval,
  acceptRoomEnd,
  Database,
  ensureSigningKey,
  loadSigningKeys,
  RECORDER_TASK,
  saveCapturePass,
  startRecording,
  stopRecordings,
  takeSweep,
} from '@callplane/db';
import { MediaNodes } from '@callplane/media';
import type { ServerMessages } from '@callplane/protocol';
import { JobProducer, publishRoomChanged } from '@callplane/queue';
import {
  createTestTenant,
  gatewayUrlOf,
  insertTestParticipant,
  moveOne,
  PATIENT_DEADLINES,
  PATIENT_REDIS,
  roomRow,
  spawnApp,
  stopAtEnd,
  TEST_ENCRYPTION_KEYS,
  workerServers,
  type TestApp,
  type TestJanus,
  type TestServer,
} from '@callplane/testing';
import jwt from 'jsonwebtoken';
import { connectClient, type TestClient } from './client.testkit.js';

/** A gateway in a process of its own. */
export interface TestInstance {
  url: string;
  app: TestApp;
  /** The log lines since the file started it, or asked for the one of its worker. */
  log(): string;
  /** The metrics in the text that a scrape returns. */
  metrics(): Promise<string>;
  /** The value of the first series that begins like this; 0 if there is none. */
  valueOf(sample: string): Promise<number>;
  /** Drains and ends the process. Idempotent. */
  close(): Promise<unknown>;
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

/** PostgreSQL, Redis and a tenant for one test file, and the gateways in front of them. */
export type TestSignaling = Awaited<ReturnType<typeof startTestSignaling>>;

interface InviteOptions {
  permissions?: Permission[];
  name?: string;
  metadata?: Record<string, unknown>;
  waiting?: boolean;
  /** Overrides claims of the token. */
  claims?: object;
}

/** Without limits on clients, for pages of one origin. */
const SETTINGS = {
  LOG_LEVEL: 'debug',
  ALLOWED_ORIGINS: 'https://app.example.com',
  RATE_LIMIT_SIGNALING_PER_SECOND: '0',
  RATE_LIMIT_MESSAGES_PER_SECOND: '0',
  RATE_LIMIT_METADATA_PER_SECOND: '0',
  RATE_LIMIT_JOINS_PER_MINUTE: '0',
  RATE_LIMIT_RESUMPTIONS_PER_MINUTE: '0',
  RATE_LIMIT_FAILED_ARRIVALS_PER_MINUTE: '0',
};

/** The node that {@link usesJanus} names, connected from this process until the end of the test file. */
export async function connectJanus({ url, apiSecret, adminKey }: TestJanus): Promise<MediaNodes> {
  const addresses = [{ id: 'm1', url }];
  const nodes = MediaNodes.open({ addresses, apiSecret, adminKey, random: Math.random, allowOutdated: true });
  stopAtEnd(() => nodes.close());
  await Promise.all(nodes.all().map((node) => node.untilUp(60_000)));
  return nodes;
}

/** The settings of a gateway that uses this media server. */
export const usesJanus = ({ url, apiSecret, adminKey }: TestJanus): Record<string, string> => ({
  MEDIA_NODES: `m1=${url}`,
  MEDIA_API_SECRET: apiSecret,
  MEDIA_ADMIN_KEY: adminKey,
});

/** @param own servers that the file may break, instead of the servers of its Jest worker. */
export async function startTestSignaling(own: { databaseUrl?: string; redis?: TestServer } = {}) {
  const worker = await workerServers();
  const { databaseUrl: url, redis } = { databaseUrl: worker.databaseUrl, redis: worker.redis, ...own };
  const servers = { DATABASE_URL: gatewayUrlOf(url), REDIS_URL: redis.url };
  const database = new Database({
    url,
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

  async function invite(
    roomId: string,
    { permissions = [...PERMISSIONS], name = 'Ada', metadata = {}, waiting, claims = {} }: InviteOptions = {},
  ): Promise<Invited> {
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
      waiting,
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
  }
  async function join(instanceUrl: string, invited: Invited, more: object = {}): Promise<Joined> {
    const client = await connectClient(instanceUrl);
    client.send({ type: 'join', token: invited.token, ...more });
    return { ...invited, client, welcome: await client.until('welcome') };
  }
  /** The notice of a change by the API. */
  const publish = (roomId: string, version: number | null = null) =>
    publishRoomChanged(producer.redis, roomId, version);
  async function events(roomId: string): Promise<{ type: string; sequence: number; data: any }[]> {
    const rows = await database.prisma.event.findMany({ where: { roomId }, orderBy: { sequence: 'asc' } });
    return rows.map(({ type, sequence, body }) => ({ type, sequence: sequence!, data: JSON.parse(body).data }));
  }

  return {
    databaseUrl: url,
    database,
    redis,
    tenant,
    /** @param settings environment variables. Without any, it is the gateway of this Jest worker. */
    async start(settings?: Record<string, string>): Promise<TestInstance> {
      if (settings === undefined && Object.keys(own).length === 0) {
        return watch(await worker.app('signaling', { ...servers, ...SETTINGS }));
      }
      return watch(await spawnApp({ name: 'signaling', env: { ...servers, ...SETTINGS, ...settings } }));
    },
    async newRoom({ maxParticipants = 100, ...more }: { maxParticipants?: number; record?: object } = {}) {
      return (await database.prisma.room.create({ data: roomRow(tenant, { maxParticipants, ...more }) })).id;
    },
    invite,
    join,
    /** Invites a participant, connects and joins. */
    async enter(
      instanceUrl: string,
      roomId: string,
      { autoSubscribe, ...options }: InviteOptions & { autoSubscribe?: boolean } = {},
    ): Promise<Joined> {
      return join(instanceUrl, await invite(roomId, options), autoSubscribe === undefined ? {} : { autoSubscribe });
    },
    async resume(instanceUrl: string, welcome: ServerMessages['welcome'], more: object = {}) {
      const client = await connectClient(instanceUrl);
      client.send({ ...resumptionOf(welcome), ...more });
      return { ...(await client.until('welcome')), client };
    },
    /** Acts like the API: the accepting transaction and the notice. */
    async remove(roomId: string, participantId: string, notice = true): Promise<void> {
      const accepted = await acceptParticipantRemoval(database, tenant, roomId, participantId, new Date());
      if (notice) await publish(roomId, accepted?.roomVersion);
    },
    /** Acts like the API and a worker: the transactions and the notices. */
    async move(roomId: string, participantId: string, to: string): Promise<void> {
      await moveOne(database, tenant, { roomId, participantId }, { roomId: to }, new Date());
      await Promise.all([publish(roomId), publish(to)]);
    },
    async end(roomId: string): Promise<void> {
      const accepted = await acceptRoomEnd(database, tenant, roomId, new Date());
      await publish(roomId, accepted?.roomVersion);
    },
    /** Acts like the API. No recorder and no media server has to run. */
    async record(roomId: string): Promise<void> {
      const recording = {
        id: newId('recording'),
        participantId: null,
        mode: 'tracks',
        audioOnly: false,
        layout: null,
        metadata: {},
        maxDurationSeconds: 3600,
      } as const;
      const holder = { name: `recorder ${RECORDER_TASK}`, holder: 'test', leaseMs: 600_000, finishedMsAgo: null };
      await takeSweep(database.sql, holder);
      await saveCapturePass(database.sql, 'm1', new Date());
      const started = await database.transaction((tx) => startRecording(tx, tenant, roomId, recording));
      if (typeof started === 'string') throw new Error(started);
      await publish(roomId);
    },
    async stopRecordings(roomId: string): Promise<void> {
      await database.transaction((tx) => stopRecordings(tx, tenant, roomId, null, new Date()));
      await publish(roomId);
    },
    events,
    /** The events of one participant in short form: `joined`, `left removed`, … */
    async story(roomId: string, participantId: string): Promise<string[]> {
      return (await events(roomId))
        .filter(({ data }) => data.participant?.id === participantId)
        .map(({ type, data }) => [type.split('.')[1], data.reason ?? data.track?.trackId].filter(Boolean).join(' '));
    },
  };
}

/** Follows a gateway from here on: its log, and its metrics. */
function watch(app: TestApp): TestInstance {
  const loggedBefore = app.output().length;
  return {
    url: app.url,
    app,
    log: () => app.output().slice(loggedBefore),
    metrics: async () => (await fetch(app.metricsUrl)).text(),
    async valueOf(sample) {
      const line = (await this.metrics()).split('\n').find((each) => each.startsWith(sample));
      return line === undefined ? 0 : Number(line.split(' ').at(-1));
    },
    close: () => app.stop(),
  };
}

/** The first message of a connection that resumes the session of this welcome. */
export function resumptionOf({ room, sessionId, resumeSecret }: ServerMessages['welcome']) {
  return { type: 'resume' as const, roomId: String(room['id']), sessionId, resumeSecret };
}
