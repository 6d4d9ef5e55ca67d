import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { PERMISSIONS } from '@callplane/core';
import {
  spawnApp,
  startMediaAgent,
  startTestCoturn,
  startTestJanus,
  stopAtEnd,
  temporaryDirectory,
  type TestCoturn,
  type TestJanus,
} from '@callplane/testing';
import { startStack } from '../faults/faults.testkit.js';

export interface StageOptions {
  relay?: boolean;
  /** Whether calls can be recorded: with an agent beside the Janus and a recorder. */
  recordings?: boolean;
}

export type Stage = Awaited<ReturnType<typeof openStage>>;

export const signalingUrl = (port: number | string) => `ws://127.0.0.1:${port}/v1/signaling`;

/** All servers and apps of a call, as processes of this test file. */
export async function openStage({ relay = false, recordings = false }: StageOptions = {}) {
  const [stack, janus, coturn] = await Promise.all([
    startStack(),
    startTestJanus(),
    relay ? startTestCoturn() : undefined,
  ]);
  const { key } = stack.tenant;
  const recordingsFolder = temporaryDirectory('recordings');
  stopAtEnd(() => rm(recordingsFolder, { recursive: true, force: true }));
  const env = { ...mediaSettings(janus, coturn), ...(recordings ? { RECORDINGS_FOLDER: recordingsFolder } : {}) };
  /** Starts one more gateway. */
  const spawnSignaling = (more?: Record<string, string>) => stack.spawnSignaling({ ...env, ...more });
  const [api, signaling] = await Promise.all([stack.spawnApi(env), spawnSignaling(), stack.spawnWorker(env)]);

  const spawnRecorder = () => {
    const servers = { DATABASE_URL: stack.databaseUrl, REDIS_URL: stack.redis.url };
    const own = { RECORDER_SCRATCH_FOLDER: join(recordingsFolder, 'scratch'), RECORDER_LEASE_MS: '5000' };
    return spawnApp({ name: 'recorder', env: { ...servers, ...own, ...env } });
  };
  if (recordings) startMediaAgent(janus, 'one', { databaseUrl: stack.databaseUrl, recordingsFolder });

  const stage = {
    api,
    key,
    signaling,
    janus,
    coturn,
    /** The folder of the store; it stays empty unless calls can be recorded. */
    recordingsFolder,
    recorder: recordings ? await spawnRecorder() : undefined,
    spawnRecorder,
    databaseUrl: stack.databaseUrl,
    /** The default signaling URL of the clients. */
    url: signalingUrl(new URL(signaling.url).port),
    spawnSignaling,
    call: (method: string, path: string, body?: object): Promise<{ status: number; body: any }> =>
      stack.call(api, method, path, body === undefined ? {} : { body }),
    newRoom: () => stack.newRoom(api),
    async newEncryptedRoom(): Promise<string> {
      return (await stage.call('POST', '/v1/rooms', { name: 'Private', encryption: 'required' })).body.id;
    },
    async token(roomId: string, name: string): Promise<{ token: string; participantId: string }> {
      const sent = { participantName: name, permissions: PERMISSIONS };
      const { status, body } = await stage.call('POST', `/v1/rooms/${roomId}/tokens`, sent);
      if (status !== 201) throw new Error(`POST …/tokens answered ${status}: ${JSON.stringify(body)}`);
      return body;
    },
    /** Where the session's media is, as its gateway has written it. */
    async mediaState(sessionId: string): Promise<any> {
      const session = await stack.database.prisma.participantSession.findUniqueOrThrow({ where: { id: sessionId } });
      return session.media;
    },
    /** Types of the room's events so far, in sequence. */
    async eventTypes(roomId: string): Promise<string[]> {
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
