import { randomUUID } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { Database, loadVerificationKeys, nodeLoads } from '@callplane/db';
import type { ClientMessage, ClientMessages, CloseReason, ServerMessage, ServerMessages } from '@callplane/protocol';
import { JobProducer, RoomBus } from '@callplane/queue';
import { createLogger, createMetrics, systemClock } from '@callplane/runtime';
import {
  createRtcPeer,
  createTestDatabase,
  eventually,
  gatewayUrlOf,
  PATIENT_DEADLINES,
  PATIENT_REDIS,
  startTestJanus,
  stopAtEnd,
  type TestJanus,
} from '@callplane/testing';
import { ArrivalLimits } from '../arrivals/limits.js';
import { VerificationKeys } from '../arrivals/token.js';
import { flows, startCall } from '../call.testkit.js';
import { Gateway } from '../gateway.js';
import { MediaPlaces } from '../media/places.js';
import { signalingMetrics } from '../metrics.js';
import {
  connectJanus,
  resumptionOf,
  startTestSignaling,
  usesJanus,
  type Invited,
  type TestInstance,
  type TestSignaling,
} from '../signaling.testkit.js';
import { StreamRates } from '../requests/stream-rates.js';
import type { Client, ClientHandler, CloseDetails, Ending } from './client.js';

/** A client without a WebSocket, as a transport over HTTP would be. */
class PortClient implements Client {
  readonly id = randomUUID();
  readonly logFields = {};
  readonly addressKey = '192.0.2.1';
  readonly isLeaving = false;
  readonly pauseMs = 0;
  ending: Ending | null = null;
  closing: CloseDetails | null = null;
  readonly messages: ServerMessage[] = [];

  constructor(readonly handler: ClientHandler) {}

  sendWelcome(text: string): void {
    this.sendText(text);
  }
  sendText(text: string): void {
    this.messages.push(JSON.parse(text) as ServerMessage);
  }
  sendPart(text: string): boolean {
    this.sendText(text);
    return true;
  }
  close(reason: CloseReason, details: CloseDetails): void {
    this.closing ??= details;
    this.end(reason);
  }
  drop(): void {
    this.end('elsewhere');
  }
  end(ending: Ending): void {
    if (this.ending !== null) return;
    this.ending = ending;
    this.handler.onEnd(this, ending);
  }

  /** Resolves to the answer, or to how the client ended before it. */
  async request(message: ClientMessage): Promise<ServerMessage | Ending> {
    const id = randomUUID();
    await this.handler.onMessage(this, { ...message, id });
    return eventually(
      () => this.messages.find((one) => 'replyTo' in one && one.replyTo === id) ?? this.ending ?? undefined,
    );
  }
}

const UNLIMITED = { perSecond: 0, burst: 1 };
const UNLIMITED_PACE = { perMinute: 0, burst: 1 };

let kit: TestSignaling;
let janus: TestJanus;
/** A gateway in a process of its own, whose clients have WebSockets. */
let other: TestInstance;
beforeAll(async () => {
  const { url: databaseUrl } = await createTestDatabase();
  [kit, janus] = await Promise.all([startTestSignaling({ databaseUrl }), startTestJanus()]);
  other = await kit.start(usesJanus(janus));
});

/** A gateway in this process. It listens on no port. */
async function startGateway(): Promise<Gateway> {
  const instanceId = randomUUID();
  const settings = {
    url: gatewayUrlOf(kit.databaseUrl),
    deadlines: PATIENT_DEADLINES,
    onConnectionError: () => undefined,
  };
  const database = new Database({ ...settings, poolMax: 4 });
  const heartbeats = new Database({ ...settings, poolMax: 1 });
  const events = { onLost: () => undefined, onReady: () => undefined };
  const producer = new JobProducer(kit.redis.url, events, PATIENT_REDIS);
  const bus = new RoomBus({ redisUrl: kit.redis.url, instanceId, publisher: producer.redis, events });
  const nodes = await connectJanus(janus);
  const logger = createLogger({ LOG_LEVEL: 'error', LOG_FORMAT: 'json' }, 'signaling', new PassThrough());
  const metrics = signalingMetrics(createMetrics({ app: 'signaling' }));
  const paces = { joins: UNLIMITED_PACE, resumptions: UNLIMITED_PACE, failures: { perMinute: 1, burst: 2 } };
  const gateway = new Gateway(
    {
      instanceId,
      database,
      databasePoolMax: 4,
      producer,
      bus,
      places: new MediaPlaces(nodes, () => nodeLoads(database.sql)),
      forwardLimits: { ports: [], environmentMax: 0 },
      keys: new VerificationKeys(() => loadVerificationKeys(database.sql, systemClock.now())),
      tokens: { issuer: 'callplane', audience: 'callplane-signaling' },
      turn: { stunUrls: [], turnUrls: [], secret: null, ttlSeconds: 3600 },
      rosterFullMax: 100,
      reconnectGraceSeconds: 15,
      pingIntervalSeconds: 10,
      connectionLimit: UNLIMITED,
      mediaNodeDeadSeconds: 5,
      requestLimits: { messages: UNLIMITED, metadata: UNLIMITED },
      streamRates: new StreamRates(0),
      arrivalLimits: new ArrivalLimits(paces, { metrics, logger }),
      metrics,
      logger,
      clock: systemClock,
    },
    heartbeats,
  );
  stopAtEnd(async () => {
    await gateway.close();
    await Promise.all([bus.close(), producer.close(), database.close(), heartbeats.close()]);
  });
  return gateway;
}

type Welcome = ServerMessages['welcome'];

async function join({ clients }: Gateway, { token }: Invited) {
  const client = new PortClient(clients);
  const welcome = (await client.request({ type: 'join', token })) as Welcome;
  expect(welcome).toMatchObject({ type: 'welcome', resumed: false });
  return { client, welcome };
}

async function resume({ clients }: Gateway, joined: Welcome) {
  const client = new PortClient(clients);
  const welcome = (await client.request(resumptionOf(joined))) as Welcome;
  expect(welcome).toMatchObject({ type: 'welcome', resumed: true, sessionId: joined.sessionId });
  return { client, welcome };
}

/** Publishes a camera over a peer connection of its own. */
async function publish(client: PortClient): Promise<void> {
  const peer = await createRtcPeer();
  const camera = peer.addVideo();
  const sdp = await peer.offer();
  const tracks = [{ trackId: 'cam', source: 'camera' as const, mid: camera.mid()! }];
  const answer = (await client.request({ type: 'publish', sdp, tracks })) as ServerMessages['published'];
  expect(answer.type).toBe('published');
  await peer.acceptAnswer(answer.sdp);
  peer.onCandidate((candidate) => {
    const message = { type: 'candidate', target: 'publisher', candidate } as ClientMessages['candidate'];
    void client.handler.onMessage(client, message);
  });
}

describe('a client without a WebSocket', () => {
  test('joins, publishes, and resumes its session while its media flows', async () => {
    const gateway = await startGateway();
    const roomId = await kit.newRoom();
    const bob = startCall(kit, await kit.enter(other.url, roomId));
    const ada = await kit.invite(roomId);
    const sees = (fits: (one: { connected: boolean; tracks: object[] } | undefined) => boolean) =>
      bob.client.untilOthers((others) => fits(others.get(ada.participantId)));

    const { client: first, welcome } = await join(gateway, ada);
    await publish(first);
    await flows(bob.subscriber, 'video');
    await sees((one) => one?.tracks.length === 1);

    first.end('lost');
    await sees((one) => one?.connected === false);
    const { client: second, welcome: resumed } = await resume(gateway, welcome);
    expect(resumed.media.continued).toBe(true);
    await sees((one) => one?.connected === true);
    await flows(bob.subscriber, 'video');
    expect(await second.request({ type: 'mute', trackId: 'cam', muted: true })).toMatchObject({ type: 'ok' });

    const { client: third } = await resume(gateway, welcome);
    expect(second.ending).toBe('elsewhere');
    expect(await third.request({ type: 'message', data: 'hello' })).toMatchObject({ type: 'ok' });
    await bob.client.until('message', ({ data }) => data === 'hello');

    await kit.remove(roomId, ada.participantId);
    await eventually(() => third.ending === 'removed');
    await sees((one) => one === undefined);
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined', 'published cam']);
    await bob.end();
  });

  test('leaves, and gets the reason of each refusal with the time to wait', async () => {
    const gateway = await startGateway();
    const { client, welcome } = await join(gateway, await kit.invite(await kit.newRoom()));
    expect(await client.request({ type: 'leave' })).toBe('left');
    const late = new PortClient(gateway.clients);
    expect(await late.request(resumptionOf(welcome))).toBe('left');
    const refused = async () => {
      const guest = new PortClient(gateway.clients);
      return [await guest.request({ type: 'join', token: 'nonsense' }), guest.closing?.retryAfterSeconds];
    };
    expect([await refused(), await refused(), await refused()]).toEqual([
      ['invalid_token', undefined],
      ['invalid_token', undefined],
      ['too_many_attempts', expect.any(Number)],
    ]);
  });

  test('is told of a drain, and continues at another gateway over a WebSocket with the same media', async () => {
    const gateway = await startGateway();
    const roomId = await kit.newRoom();
    const bob = startCall(kit, await kit.enter(other.url, roomId));
    const { client, welcome } = await join(gateway, await kit.invite(roomId));
    await publish(client);
    await flows(bob.subscriber, 'video');
    await gateway.close();
    expect(client.ending).toBe('drain');
    const resumed = await kit.resume(other.url, welcome);
    expect(resumed).toMatchObject({ resumed: true, media: { continued: true } });
    await flows(bob.subscriber, 'video');
    await bob.end();
  });
});
