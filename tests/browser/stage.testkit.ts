import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  spawnApp,
  startMediaAgent,
  startTestCoturn,
  startTestJanus,
  stopAtEnd,
  temporaryDirectory,
  type TestApp,
  type TestCoturn,
  type TestJanus,
} from '@callplane/testing';
import { startStack } from '../faults/faults.testkit.js';

const EVERYTHING = [
  'room:join',
  'audio:publish',
  'video:publish',
  'screen:publish',
  'messages:send',
  'metadata:update',
];

export interface StageOptions {
  relay?: boolean;
  /** Whether calls can be recorded: with an agent beside the Janus and a recorder. */
  recordings?: boolean;
}

/** All servers and apps of a call, as processes of this test file. */
export interface Stage {
  readonly api: TestApp;
  readonly key: string;
  readonly signaling: TestApp;
  readonly janus: TestJanus;
  readonly coturn: TestCoturn | undefined;
  /** The folder of the store; it stays empty unless calls can be recorded. */
  readonly recordingsFolder: string;
  readonly recorder: TestApp | undefined;
  spawnRecorder(): Promise<TestApp>;
  readonly databaseUrl: string;
  /** The default signaling URL of the clients. */
  readonly url: string;
  /** Starts one more gateway. */
  spawnSignaling(env?: Record<string, string>): Promise<TestApp>;
  call(method: string, path: string, body?: object): Promise<{ status: number; body: any }>;
  newRoom(): Promise<string>;
  token(roomId: string, name: string): Promise<{ token: string; participantId: string }>;
  /** Where the session's media is, as its gateway has written it. */
  mediaState(sessionId: string): Promise<any>;
  /** Types of the room's events so far, in sequence. */
  eventTypes(roomId: string): Promise<string[]>;
}

export const signalingUrl = (port: number | string) => `ws://127.0.0.1:${port}/v1/signaling`;

export async function openStage({ relay = false, recordings = false }: StageOptions = {}): Promise<Stage> {
  const [stack, janus, coturn] = await Promise.all([
    startStack(),
    startTestJanus(),
    relay ? startTestCoturn() : undefined,
  ]);
  const { key } = stack.tenant;
  const recordingsFolder = temporaryDirectory('recordings');
  stopAtEnd(() => rm(recordingsFolder, { recursive: true, force: true }));
  const env = { ...mediaSettings(janus, coturn), ...(recordings ? { RECORDINGS_FOLDER: recordingsFolder } : {}) };
  const spawnSignaling = (more?: Record<string, string>) => stack.spawnSignaling({ ...env, ...more });
  const [api, signaling] = await Promise.all([stack.spawnApi(env), spawnSignaling(), stack.spawnWorker(env)]);

  const spawnRecorder = () => {
    const servers = { DATABASE_URL: stack.databaseUrl, REDIS_URL: stack.redis.url };
    const own = { RECORDER_SCRATCH_FOLDER: join(recordingsFolder, 'scratch'), RECORDER_LEASE_MS: '5000' };
    return spawnApp({ name: 'recorder', env: { ...servers, ...own, ...env } });
  };
  if (recordings) startMediaAgent(janus, 'one', { databaseUrl: stack.databaseUrl, recordingsFolder });

  const stage: Stage = {
    api,
    key,
    signaling,
    janus,
    coturn,
    recordingsFolder,
    recorder: recordings ? await spawnRecorder() : undefined,
    spawnRecorder,
    databaseUrl: stack.databaseUrl,
    url: signalingUrl(new URL(signaling.url).port),
    spawnSignaling,
    call: (method, path, body) => stack.call(api, method, path, body === undefined ? {} : { body }),
    newRoom: () => stack.newRoom(api),
    async token(roomId, name) {
      const sent = { participantName: name, permissions: EVERYTHING };
      const { status, body } = await stage.call('POST', `/v1/rooms/${roomId}/tokens`, sent);
      if (status !== 201) throw new Error(`POST …/tokens answered ${status}: ${JSON.stringify(body)}`);
      return body as { token: string; participantId: string };
    },
    async mediaState(sessionId) {
      const session = await stack.database.prisma.participantSession.findUniqueOrThrow({ where: { id: sessionId } });
      return session.media;
    },
    async eventTypes(roomId) {
      const { body } = await stage.call('GET', `/v1/events?roomId=${roomId}&limit=100`);
      return body.data.map(({ type }: { type: string }) => type);
    },
  };
  return stage;
}

/** Settings of apps for a media server and a TURN server. */
export function mediaSettings(janus: TestJanus | undefined, coturn: TestCoturn | undefined): Record<string, string> {
  return {
    ...(janus && {
      MEDIA_NODES: `one=${janus.url}`,
      MEDIA_API_SECRET: janus.apiSecret,
      MEDIA_ADMIN_KEY: janus.adminKey,
    }),
    ...(coturn && {
      TURN_SECRET: coturn.secret,
      TURN_ADMIN_URLS: coturn.adminUrl,
      TURN_ADMIN_PASSWORD: coturn.adminPassword,
      TURN_URLS: ['udp', 'tcp'].map((way) => `turn:${coturn.host}:${coturn.port}?transport=${way}`).join(','),
    }),
  };
}
