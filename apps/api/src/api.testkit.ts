import { randomBytes } from 'node:crypto';
import { Agent, type IncomingMessage } from 'node:http';
import {
  apiKeyHint,
  formatApiKey,
  hashApiKey,
  newId,
  SCOPES,
  type ApiKeyType,
  type EventType,
  type NewEvent,
  type Permission,
  type Scope,
} from '@callplane/core';
import { Database, insertApiKey, type JoinOutcome } from '@callplane/db';
import {
  connectToTestRedis,
  createTestTenant,
  eventually,
  joinOne,
  PATIENT_DEADLINES,
  spawnApp,
  stopAtEnd,
  workerServers,
  type TestApp,
  type TestTenant,
} from '@callplane/testing';
import request from 'supertest';
import { eventSchema } from './events/events.schemas.js';
import { documentedAnswers } from './openapi/documented-answers.testkit.js';
import { exampleOf } from './openapi/examples.js';

export type { TestTenant };

export interface Sent {
  key?: string | null;
  body?: unknown;
  /** A raw body, sent unchanged instead of a JSON body. */
  raw?: string | Buffer;
  headers?: Record<string, string>;
}

export interface Answer {
  status: number;
  headers: Record<string, any>;
  text: string;
  /** The parsed JSON; `{}` for an answer without a body. */
  body: any;
}

/** The built API in a process of its own, and a new tenant. */
export interface TestApi {
  url: string;
  app: TestApp;
  database: Database;
  /** A connection to the API's Redis, as a worker or a gateway has one. */
  redis: Awaited<ReturnType<typeof connectToTestRedis>>;
  tenant: TestTenant;
  /** The API's log since the file began. */
  log(): string;
  /** The same, once it has the line of the request with this answer. */
  logAfter(answer: Pick<Answer, 'headers'>): Promise<string>;
  /** The metrics in the text format of a scrape. */
  metrics(): Promise<string>;
  newTenant(): Promise<TestTenant>;
  /** The same API, called by another tenant. */
  as(tenant: TestTenant): TestApi;
  newKey(
    environmentId: string,
    options?: { type?: ApiKeyType; scopes?: Scope[]; expiresAt?: Date; revokedAt?: Date },
  ): Promise<string>;
  /** Sends a request, by default with the tenant's key, and checks the answer against the OpenAPI document. */
  call(method: string, path: string, sent?: Sent): Promise<Answer>;
  /** Creates a room of the tenant through the API. */
  room(body?: object): Promise<string>;
  /** The rows of all pages of a list. The path has a query. */
  pages(path: string, key?: string): Promise<any[]>;
  /** Issues a token of a room. */
  invite(roomId: string, body?: object): Promise<Invited>;
  /** Joins a room as a gateway does. */
  join(roomId: string, invited: Invited, at?: Date, permissions?: readonly Permission[]): Promise<Joined>;
}

export interface Invited {
  participantId: string;
  tokenId: string;
}

export type Joined = Extract<JoinOutcome, { outcome: 'joined' }>;

/** The settings that most files use. */
const SETTINGS = {
  LOG_LEVEL: 'debug',
  TRUST_PROXY: '1',
  TURN_URLS: 'turn:turn.example.com',
  TURN_SECRET: 'test-turn-secret',
  // Nothing is stored there.
  RECORDINGS_FOLDER: '/tmp/callplane-test-recordings',
  // No worker runs, so no clean-up completes in time.
  ROOM_END_WAIT_MS: '50',
  RATE_LIMIT_READS_PER_SECOND: '0',
  RATE_LIMIT_WRITES_PER_SECOND: '0',
  RATE_LIMIT_UNKNOWN_KEYS_PER_MINUTE: '0',
};

/**
 * The API of this Jest worker, which the next files use, too.
 * @param settings environment variables. With any, even none of them, an API of this file alone starts with them, on the
 *   worker's database and Redis unless they name others.
 */
export async function startTestApi(settings?: Record<string, string>): Promise<TestApi> {
  const worker = await workerServers();
  const env: Record<string, string> = {
    DATABASE_URL: worker.databaseUrl,
    REDIS_URL: worker.redis.url,
    ...SETTINGS,
    ...settings,
  };
  const app = await (settings === undefined ? worker.app('api', SETTINGS) : spawnApp({ name: 'api', env }));
  const loggedBefore = app.output().length;
  const database = new Database({ url: env['DATABASE_URL']!, poolMax: 10, deadlines: PATIENT_DEADLINES });
  stopAtEnd(() => database.close());
  const redis = await connectToTestRedis(env['REDIS_URL']!);

  const { url } = app;
  const check = documentedAnswers(JSON.parse(await (await fetch(`${url}/openapi.json`)).text()));
  const log = () => app.output().slice(loggedBefore);

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

  const agent = new Agent({ keepAlive: true });
  stopAtEnd(() => {
    agent.destroy();
    return Promise.resolve();
  });
  const callWith = async (method: string, path: string, { key, body, raw, headers = {} }: Sent) => {
    let sent = request(url)[method.toLowerCase() as 'get'](path).agent(agent).set(headers).parse(textOf).buffer();
    if (typeof key === 'string') sent = sent.set('authorization', `Bearer ${key}`);
    if (raw !== undefined) sent = sent.serialize((text: unknown) => text as string).send(raw as string);
    else if (body !== undefined) sent = sent.set('content-type', 'application/json').send(JSON.stringify(body));
    const response = await sent.ok(() => true);
    const text = typeof response.body === 'string' ? response.body : '';
    const answer = { status: response.status, headers: response.headers as Answer['headers'], text };
    check({ method: method.toUpperCase(), path, ...answer });
    return { ...answer, body: text === '' ? {} : JSON.parse(text) };
  };

  const as = (tenant: TestTenant): TestApi => {
    const call: TestApi['call'] = (method, path, sent = {}) => callWith(method, path, { key: tenant.key, ...sent });
    return {
      url,
      app,
      database,
      redis,
      tenant,
      log,
      logAfter: async ({ headers }) => {
        const requestId = `"requestId":"${String(headers['x-request-id'])}"`;
        const isItsLine = (line: string) => line.includes(requestId) && line.includes('"message":"request"');
        await eventually(() => log().split('\n').some(isItsLine));
        return log();
      },
      metrics: async () => (await fetch(app.metricsUrl)).text(),
      newTenant: () => createTestTenant(database),
      as,
      newKey,
      call,
      room: async (body = { name: 'A room' }) => (await call('POST', '/v1/rooms', { body })).body.id,
      pages: async (path, key = tenant.key) => {
        const rows: unknown[] = [];
        for (let next = path; ;) {
          const { body } = await call('GET', next, { key });
          rows.push(...body.data);
          if (body.nextCursor === null) return rows;
          next = `${path.replace(/&cursor=.*/, '')}&cursor=${body.nextCursor}`;
        }
      },
      invite: async (roomId, body = { participantName: 'Ada' }) =>
        (await call('POST', `/v1/rooms/${roomId}/tokens`, { body })).body,
      join: async (roomId, { participantId, tokenId }, at = new Date(), permissions = ['room:join']) => {
        const joined = await joinOne(database, { tenant, roomId, participantId, tokenId, permissions }, at);
        if (joined.outcome !== 'joined') throw new Error(joined.outcome);
        return joined;
      },
    };
  };
  return as(await createTestTenant(database));
}

/** An event with the example data of the OpenAPI document: `call` checks every answer against that document. */
export function newEvent(type: EventType, tenant: TestTenant, roomId: string | null, createdAt = new Date()): NewEvent {
  const { data } = exampleOf(eventSchema(type)) as Pick<NewEvent, 'data'>;
  return { type, tenant, roomId, participantId: null, createdAt, data };
}

/** Reads an answer as text. A stream of events has no end, so its connection closes after the headers. */
function textOf(response: unknown, done: (error: Error | null, text: string) => void): void {
  const stream = response as IncomingMessage;
  let text = '';
  if (String(stream.headers['content-type']).startsWith('text/event-stream')) {
    stream.destroy();
    done(null, '');
    return;
  }
  stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  stream.on('end', () => done(null, text)).on('error', (error) => done(error, ''));
}
