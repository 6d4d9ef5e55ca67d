import { randomBytes } from 'node:crypto';
import { PassThrough } from 'node:stream';
import {
  createAddressFilter,
  formatApiKey,
  hashApiKey,
  apiKeyHint,
  newId,
  parseMasterKeys,
  SCOPES,
  type ApiKeyType,
  type Scope,
} from '@callplane/core';
import {
  activateDueSigningKey,
  createEnvironment,
  createProject,
  Database,
  ensureSigningKey,
  findApiKeysByHash,
  insertApiKey,
  loadSigningKeys,
} from '@callplane/db';
import { JobProducer, NoticeListener, publishNotice } from '@callplane/queue';
import {
  createHealth,
  createLogger,
  createMetrics,
  redisCheck,
  redisEvents,
  systemClock,
  type HttpDeadlines,
} from '@callplane/runtime';
import {
  connectionTo,
  createTestDatabase,
  startTestRedis,
  stopAtEnd,
  TEST_ENCRYPTION_KEYS,
  type TestServer,
  PATIENT_DEADLINES,
} from '@callplane/testing';
import request from 'supertest';
import { createApp, type AppSettings } from './app.js';
import { consoleDirectories } from './console/console-directories.js';
import type { Deps } from './deps.js';
import { EventWaiter, readNewest } from './events/event-waiter.js';
import { CallerCache } from './http/caller-cache.js';
import { requestMetrics } from './http/request-metrics.js';
import { documentedAnswers } from './openapi/documented-answers.testkit.js';
import { openApiDocument } from './openapi/document.js';
import { SettlementWaiter } from './operations/settlement-waiter.js';
import { apiRoutes } from './routes.js';
import { listen } from './server.js';
import { SigningKeyRing } from './signing-keys/signing-key-ring.js';
import { HeavyReads } from './statements/heavy-reads.js';
import { ListTurns } from './statements/list-turns.js';
import { sharedStatements } from './statements/shared-statements.js';
import { StreamHub, type StreamHubSettings } from './stream/stream-hub.js';
import { reportReadFailures } from './stream/read-failures.js';
import { streamReads } from './stream/stream-reads.js';

export interface TestTenant {
  projectId: string;
  environmentId: string;
  /** A secret key with all scopes. */
  key: string;
  keyId: string;
}

export interface Sent {
  key?: string | null;
  body?: unknown;
  /** A raw body, sent unchanged instead of a JSON body. */
  raw?: string | Buffer;
  headers?: Record<string, string>;
}

export interface TestApi {
  url: string;
  database: Database;
  redis: TestServer;
  deps: Deps;
  tenant: TestTenant;
  /** Everything that the app has logged, as text. */
  log(): string;
  /** The metrics in the text format of a scrape. */
  metrics(): Promise<string>;
  /** Number of statements that looked up API keys. */
  keyLookUps(): number;
  newTenant(): Promise<TestTenant>;
  newKey(
    environmentId: string,
    options?: { type?: ApiKeyType; scopes?: Scope[]; expiresAt?: Date; revokedAt?: Date },
  ): Promise<string>;
  /** Sends a request, by default with the tenant's key, and checks the answer against the OpenAPI document. */
  call(method: string, path: string, sent?: Sent): Promise<request.Response>;
  /** Creates a room of the tenant through the API. */
  room(body?: object): Promise<string>;
}

export interface TestApiOptions {
  turn?: Partial<Deps['turn']>;
  webhooks?: Partial<Deps['webhooks']>;
  limits?: AppSettings['limits'];
  unknownKeys?: AppSettings['unknownKeys'];
  trustProxy?: AppSettings['trustProxy'];
  consoleFolder?: string;
  operationWaitMs?: number;
  eventWaits?: ConstructorParameters<typeof EventWaiter>[1];
  streams?: Partial<StreamHubSettings>;
  deadlines?: Partial<HttpDeadlines>;
}

const NO_LIMITS = { reads: { perSecond: 0, burst: 1 }, writes: { perSecond: 0, burst: 1 } };

/** Starts the app in this process, with real PostgreSQL and Redis. Everything closes when the test file ends. */
export async function startTestApi(options: TestApiOptions = {}): Promise<TestApi> {
  const [{ url: databaseUrl }, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  const written: string[] = [];
  const stream = new PassThrough();
  stream.on('data', (chunk: Buffer) => written.push(chunk.toString()));
  const logger = createLogger({ LOG_LEVEL: 'debug', LOG_FORMAT: 'json' }, 'api', stream);
  const database = new Database({ ...connectionTo(databaseUrl), poolMax: 10, deadlines: PATIENT_DEADLINES });
  const producer = new JobProducer(redis.url, redisEvents(logger, 'producer'));
  const notices = new NoticeListener(redis.url, redisEvents(logger, 'notices'));
  const masterKeys = parseMasterKeys([TEST_ENCRYPTION_KEYS]);
  let keyLookUps = 0;
  const callers = new CallerCache((hashes) => {
    keyLookUps += 1;
    return findApiKeysByHash(database.sql, hashes);
  }, systemClock);
  const consoleCallers = consoleDirectories({ database, reads: database }, logger, systemClock);
  notices.on('apiKeyRevoked', (hash) => {
    callers.forget(hash);
    consoleCallers.sessions.forgetKey(hash);
  });
  notices.on('consoleSessionEnded', (hash) => consoleCallers.sessions.forget(hash));
  const metrics = createMetrics({ app: 'api' });
  const eventWaiter = new EventWaiter(readNewest(database), options.eventWaits);
  const deps: Deps = {
    database,
    reads: database,
    statements: sharedStatements({ writes: database.sql, reads: database.sql }),
    heavyReads: new HeavyReads(),
    lists: new ListTurns(10),
    producer,
    settlements: new SettlementWaiter(notices),
    eventWaiter,
    streams: new StreamHub(
      streamReads(database, systemClock, reportReadFailures(logger, metrics)),
      eventWaiter,
      systemClock,
      options.streams,
    ),
    signingKeys: new SigningKeyRing(async () => {
      const now = systemClock.now();
      await ensureSigningKey(database, masterKeys, now);
      await activateDueSigningKey(database, now);
      return loadSigningKeys(database, masterKeys, now);
    }),
    masterKeys,
    turn: { stunUrls: [], turnUrls: [], secret: null, ttlSeconds: 3600, ...options.turn },
    tokens: { issuer: 'callplane', audience: 'callplane-signaling' },
    webhooks: { allowHttp: false, isAllowed: createAddressFilter([]), ...options.webhooks },
    console: {
      signalingUrl: null,
      onSessionEnded: (hash) => {
        consoleCallers.sessions.forget(hash);
        void publishNotice(producer.redis, 'consoleSessionEnded', hash);
      },
    },
    operationWaitMs: options.operationWaitMs ?? 50,
    logger,
    clock: systemClock,
  };
  const health = createHealth(
    logger,
    { postgres: { ping: () => database.checkReady() }, redis: redisCheck(producer.health) },
    () => false,
  );
  const app = createApp(deps, {
    callers: { keys: callers, console: consoleCallers },
    consoleFolder: options.consoleFolder ?? null,
    health,
    requests: requestMetrics(metrics),
    limits: options.limits ?? NO_LIMITS,
    trustProxy: options.trustProxy ?? false,
    unknownKeys: options.unknownKeys ?? { perMinute: 0, burst: 1 },
  });
  const server = await listen(app, logger, { host: '127.0.0.1', port: 0 }, 500, options.deadlines);
  stopAtEnd(async () => {
    await deps.streams.close();
    await deps.eventWaiter.close();
    await server.close();
    await Promise.all([deps.settlements.close(), notices.close(), producer.close(), database.close()]);
  });

  const url = `http://127.0.0.1:${server.port}`;
  const check = documentedAnswers(openApiDocument(apiRoutes(deps)));
  const newKey: TestApi['newKey'] = async (environmentId, { type = 'secret', scopes, expiresAt, revokedAt } = {}) => {
    const key = formatApiKey(type, randomBytes(32));
    const id = newId('apiKey');
    await insertApiKey(database.prisma, {
      id,
      environmentId,
      type,
      name: null,
      keyHash: new Uint8Array(hashApiKey(key)),
      keyHint: apiKeyHint(key),
      scopes: scopes ?? (type === 'secret' ? [...SCOPES] : []),
      createdAt: new Date(),
      expiresAt: expiresAt ?? null,
    });
    if (revokedAt !== undefined) await database.prisma.apiKey.update({ where: { id }, data: { revokedAt } });
    return key;
  };
  const newTenant: TestApi['newTenant'] = async () => {
    const project = { id: newId('project'), name: 'Test', createdAt: new Date() };
    await createProject(database.prisma, project);
    const environment = { id: newId('environment'), projectId: project.id, name: 'test', createdAt: new Date() };
    await createEnvironment(database.prisma, environment);
    const key = await newKey(environment.id);
    const { id: keyId } = await database.prisma.apiKey.findFirstOrThrow({ where: { environmentId: environment.id } });
    return { projectId: project.id, environmentId: environment.id, key, keyId };
  };
  const tenant = await newTenant();

  const call: TestApi['call'] = async (method, path, { key = tenant.key, body, raw, headers = {} } = {}) => {
    let sent = request(url)[method.toLowerCase() as 'get'](path).set(headers);
    if (key !== null) sent = sent.set('authorization', `Bearer ${key}`);
    if (raw !== undefined) sent = sent.serialize((text: unknown) => text as string).send(raw as string);
    else if (body !== undefined) sent = sent.set('content-type', 'application/json').send(JSON.stringify(body));
    const response = await sent.ok(() => true);
    check({
      method: method.toUpperCase(),
      path,
      status: response.status,
      headers: response.headers,
      // superagent leaves the text undefined for HEAD.
      text: method.toUpperCase() === 'HEAD' ? '' : response.text,
    });
    return response;
  };
  return {
    url,
    database,
    redis,
    deps,
    tenant,
    log: () => written.join(''),
    metrics: () => metrics.text(),
    keyLookUps: () => keyLookUps,
    newTenant,
    newKey,
    call,
    room: async (body = { name: 'A room' }) => ((await call('POST', '/v1/rooms', { body })).body as { id: string }).id,
  };
}
