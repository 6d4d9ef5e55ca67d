/**
 * The benchmark of recorders: calls of an own making, which are stored as an agent would. Environment: `BENCH_SECONDS`
 * (default 60), their length; `BENCH_ROUNDS` (default 3).
 */
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { captureChunkKey, newId } from '@callplane/core';
import { Database, saveCapture, saveCapturePass } from '@callplane/db';
import { FolderStore } from '@callplane/store';
import { participantRow, pictureCapture, roomRow, sessionRow, soundCapture } from '@callplane/testing';
import type { ApiClient } from '../client.js';
import { memoryKiB, onStage, treeOf, type Stage } from '../fleet/stage.js';
import { median, printHead, printRow } from './figures.js';

const SECONDS = Number(process.env.BENCH_SECONDS ?? 60);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const NODE_ID = 'bench';
/** Different pictures and sounds; larger calls have some of them twice. */
const KINDS = 3;
const CHUNK_BYTES = 4_000_000;
const SAMPLE_MS = 100;

interface Case {
  name: string;
  people: number;
  mode: 'tracks' | 'composite';
  audioOnly?: boolean;
  format?: string;
  goal?: string;
}
const CASES: Case[] = [
  { name: 'tracks of 4', people: 4, mode: 'tracks' },
  { name: 'composite of the sound of 4', people: 4, mode: 'composite', audioOnly: true },
  { name: 'composite of 2', people: 2, mode: 'composite' },
  { name: 'composite of 4', people: 4, mode: 'composite', goal: '30 s, 1.1, 40 s' },
  { name: 'composite of 9', people: 9, mode: 'composite' },
  { name: 'composite of 4, WebM', people: 4, mode: 'composite', format: 'webm' },
];

export const run = () =>
  onStage(async (stage) => {
    const folder = join(stage.dir, 'recordings');
    const api = stage.clientOf(await stage.start('api', { RECORDINGS_FOLDER: folder }));
    const database = new Database({ url: stage.environment.DATABASE_URL, poolMax: 2 });
    stage.onClose(() => database.close());
    const kinds = Array.from({ length: KINDS }, async (_, n) => ({
      picture: await pictureCapture(`testsrc2=s=640x360:r=25:d=${SECONDS},hue=h=${n * 100}`, ['-b:v', '700k']),
      sound: await soundCapture(`sine=f=${300 + 200 * n}:d=${SECONDS}`),
    }));
    const bench = { stage, api, database, store: new FolderStore(folder), folder, media: await Promise.all(kinds) };
    printHead(
      'what',
      'processor seconds a recorded minute',
      'of its ffmpegs alone',
      'peak memory',
      'stop to completed',
      'goal',
      'load',
    );
    for (const one of CASES) await measure(bench, one);
  });

interface Bench {
  stage: Stage;
  api: ApiClient;
  database: Database;
  store: FolderStore;
  folder: string;
  media: { picture: Buffer; sound: Buffer }[];
}

async function measure(bench: Bench, one: Case): Promise<void> {
  const { stage, api, folder } = bench;
  const recorder = await stage.start('recorder', {
    RECORDINGS_FOLDER: folder,
    RECORDER_SCRATCH_FOLDER: join(stage.dir, 'scratch'),
    RECORDER_COMPOSITE_FORMAT: one.format ?? 'mp4',
  });
  const rounds: Record<'minute' | 'ratio' | 'peakKiB' | 'tookSeconds', number>[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const recordingId = await recorded(bench, one);
    const [before, beganMs] = [usedSeconds(recorder.pid), performance.now()];
    await api.call('POST', `/v1/recordings/${recordingId}/stop`);
    let peakKiB = 0;
    for (;;) {
      const memory = treeOf(recorder.pid).map((pid) => residentKiB(pid));
      peakKiB = Math.max(
        peakKiB,
        memory.reduce((sum, each) => sum + each),
      );
      const { status } = await api.call('GET', `/v1/recordings/${recordingId}`);
      if (status === 'failed') throw new Error(`${recordingId} has failed`);
      if (status === 'completed') break;
      await delay(SAMPLE_MS);
    }
    const tookSeconds = (performance.now() - beganMs) / 1000;
    const after = usedSeconds(recorder.pid);
    const [own, children] = [after.own - before.own, after.children - before.children];
    rounds.push({
      minute: ((own + children) * 60) / SECONDS,
      ratio: (own + children) / children,
      peakKiB,
      tookSeconds,
    });
  }
  await recorder.stop();
  const of = (name: keyof (typeof rounds)[number]) => median(rounds.map((each) => each[name]));
  printRow(
    one.name,
    of('minute').toFixed(1),
    of('ratio').toFixed(2),
    `${Math.round(of('peakKiB') / 1024)} MiB`,
    `${of('tookSeconds').toFixed(1)} s`,
    one.goal ?? '',
    loadavg()[0]!.toFixed(1),
  );
}

/** A running recording of a call that is over, with its captures in the store. */
async function recorded({ stage, database, store, media }: Bench, { people, mode, audioOnly = false }: Case) {
  const { prisma } = database;
  const { tenant } = stage;
  const startedAt = new Date(Date.now() - SECONDS * 1000);
  const room = roomRow(tenant, { status: 'active', createdAt: startedAt, startedAt });
  const roomId = room.id;
  await prisma.room.create({ data: room });
  for (let n = 0; n < people; n += 1) {
    const feedId = `${newId('session')}-1-1`;
    const person = participantRow(tenant, roomId, { name: `Person ${n + 1}` });
    await prisma.participant.create({ data: person });
    const permissions = ['audio:publish', 'video:publish'];
    const session = sessionRow(tenant, { roomId, participantId: person.id }, { startedAt, permissions });
    await prisma.participantSession.create({ data: session });
    const { picture, sound } = media[n % KINDS]!;
    const tracks = [
      { kind: 'video', source: 'camera', bytes: picture },
      { kind: 'audio', source: 'microphone', bytes: sound },
    ] as const;
    for (const [section, { kind, source, bytes }] of tracks.entries()) {
      const track = { roomId, kind, feedId, startedAt };
      const names = { participantId: person.id, sessionId: session.id, trackId: kind, mid: String(section) };
      await prisma.recordingSpan.create({ data: { ...track, ...names, source, muted: false } });
      const capture = { ...track, nodeId: NODE_ID, name: `${n}-${kind}`, section };
      const chunks = Math.ceil(bytes.length / CHUNK_BYTES);
      for (let chunk = 0; chunk < chunks; chunk += 1) {
        const part = bytes.subarray(chunk * CHUNK_BYTES, (chunk + 1) * CHUNK_BYTES);
        await store.put(captureChunkKey(capture, chunk), part);
      }
      await saveCapture(database.sql, { ...capture, bytes: bytes.length, chunks, closed: true });
    }
  }
  const id = newId('recording');
  const how = { mode, audioOnly, layout: mode === 'composite' && !audioOnly ? 'grid' : null };
  const owner = { id, environmentId: tenant.environmentId, roomId };
  const rest = { metadata: {}, maxDurationSeconds: 86_400, status: 'recording', startedAt };
  await prisma.recording.create({ data: { ...owner, ...how, ...rest } });
  await saveCapturePass(database.sql, NODE_ID, new Date(Date.now() + 3_600_000));
  return id;
}

/** Processor time of a process, and of its children that have ended. */
function usedSeconds(pid: number): { own: number; children: number } {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  return { own: (fields[11]! + fields[12]!) / 100, children: (fields[13]! + fields[14]!) / 100 };
}

/** 0 if it has just ended. */
function residentKiB(pid: number): number {
  try {
    return memoryKiB(pid, 'VmRSS') || 0;
  } catch {
    return 0;
  }
}
