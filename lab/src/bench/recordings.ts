/**
 * The benchmark of recorders: calls of an own making, which are stored as an agent would. Environment: `BENCH_SECONDS`
 * (default 60), their length, of which each minute is the same; `BENCH_ROUNDS` (default 3); `BENCH_CASE`, the name of
 * the only case.
 */
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { captureChunkKey, newId, recordingFileKey, type StoredRecordingFile } from '@callplane/core';
import { Database, saveCapture, saveCapturePass } from '@callplane/db';
import { FolderStore } from '@callplane/store';
import {
  medianOffset,
  offsetsOf,
  participantRow,
  pictureCapture,
  repeated,
  roomRow,
  sessionRow,
  soundCapture,
} from '@callplane/testing';
import type { ApiClient } from '../client.js';
import { memoryKiB, onStage, treeOf, type Stage } from '../fleet/stage.js';
import { median, printHead, printRow } from './figures.js';

const SECONDS = Number(process.env.BENCH_SECONDS ?? 60);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
/** The part of a call that is repeated. */
const LOOP_SECONDS = Math.min(60, SECONDS);
const LOOPS = Math.ceil(SECONDS / LOOP_SECONDS);
/** By how much the clock of each sound card is slow: 180 ms an hour. */
const SLOW = 0.00005;
const NODE_ID = 'bench';
/** Different pictures and sounds; larger calls have some of them twice. */
const KINDS = 3;
/** The first person flashes and beeps at the same irregular times. */
const WHEN = 'lt(mod(t+0.3*sin(2*t),0.5),0.15)';
const BOX = 'drawbox=x=160:y=90:w=320:h=180:t=fill';
const FLASH = `${BOX}:c=black,${BOX}:c=white:enable='${WHEN}'`;
/** A part of the flash in the track, and in a grid of one and of four. */
const CROPS: Record<number, string> = { 0: '160:90:240:135', 1: '320:180:480:270', 4: '160:90:240:135' };
const SAMPLE_MS = 250;

interface Case {
  name: string;
  people: number;
  mode: 'tracks' | 'composite';
  audioOnly?: boolean;
  /** Nothing but flashes: little work for an encoder. */
  isStill?: boolean;
  format?: string;
  goal?: string;
}
const CASES: Case[] = [
  { name: 'tracks of 4', people: 4, mode: 'tracks' },
  { name: 'composite of the sound of 4', people: 4, mode: 'composite', audioOnly: true },
  { name: 'composite of 2', people: 2, mode: 'composite' },
  { name: 'composite of 4', people: 4, mode: 'composite', goal: '30 s, 1.1, 40 s' },
  { name: 'composite of 9', people: 9, mode: 'composite' },
  { name: 'composite of 1, still', people: 1, mode: 'composite', isStill: true },
  { name: 'composite of 4, WebM', people: 4, mode: 'composite', format: 'webm' },
];

export const run = () =>
  onStage(async (stage) => {
    const folder = join(stage.dir, 'recordings');
    const api = stage.clientOf(await stage.start('api', { RECORDINGS_FOLDER: folder }));
    const database = new Database({ url: stage.environment.DATABASE_URL, poolMax: 2 });
    stage.onClose(() => database.close());
    const bench = { stage, api, database, store: new FolderStore(folder), folder };
    printHead(
      'what',
      'processor seconds a recorded minute',
      'of its ffmpegs alone',
      'peak memory',
      'stop to completed',
      'picture after sound in the last minute',
      'goal',
      'load',
    );
    const only = process.env.BENCH_CASE;
    for (const one of CASES) if (only === undefined || one.name === only) await measure(bench, one);
  });

interface Bench {
  stage: Stage;
  api: ApiClient;
  database: Database;
  store: FolderStore;
  folder: string;
}

interface Media {
  picture: Buffer;
  sound: Buffer;
}

function mediaOf({ people, isStill = false }: Case): Promise<Media[]> {
  const kinds = Array.from({ length: Math.min(KINDS, people) }, async (_, n) => {
    const picture = isStill ? 'color=s=640x360' : 'testsrc2=s=640x360';
    const sound = n === 0 ? `aevalsrc='0.5*sin(6000*t)*${WHEN}'` : `sine=f=${300 + 200 * n}`;
    return {
      picture: await pictureCapture(`${picture}:r=25:d=${LOOP_SECONDS},hue=h=${n * 100}${n === 0 ? `,${FLASH}` : ''}`, [
        '-b:v',
        '700k',
      ]),
      sound: await soundCapture(`${sound}:d=${LOOP_SECONDS}${n === 0 ? '' : ',volume=0.1'}`),
    };
  });
  return Promise.all(kinds);
}

async function measure(bench: Bench, one: Case): Promise<void> {
  const { stage, api, folder } = bench;
  const recorder = await stage.start('recorder', {
    RECORDINGS_FOLDER: folder,
    RECORDER_SCRATCH_FOLDER: join(stage.dir, 'scratch'),
    RECORDER_COMPOSITE_FORMAT: one.format ?? 'mp4',
  });
  const rounds: Record<'minute' | 'ratio' | 'peakKiB' | 'tookSeconds', number>[] = [];
  const media = await mediaOf(one);
  let offsetMs: number | null = null;
  for (let round = 0; round < ROUNDS; round += 1) {
    const recordingId = await recorded(bench, one, media);
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
    const crop = one.audioOnly === true ? undefined : CROPS[one.mode === 'tracks' ? 0 : one.people];
    if (crop !== undefined) offsetMs = await offsetOf(bench, recordingId, crop);
  }
  await recorder.stop();
  const of = (name: keyof (typeof rounds)[number]): number => median(rounds.map((each) => each[name]));
  printRow(
    one.name,
    of('minute').toFixed(1),
    of('ratio').toFixed(2),
    `${Math.round(of('peakKiB') / 1024)} MiB`,
    `${of('tookSeconds').toFixed(1)} s`,
    offsetMs === null ? '' : `${offsetMs.toFixed(0)} ms`,
    one.goal ?? '',
    loadavg()[0]!.toFixed(1),
  );
}

/** A running recording of a call that is over, with its captures in the store. */
async function recorded({ stage, database, store }: Bench, { people, mode, audioOnly = false }: Case, media: Media[]) {
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
    const { picture, sound } = media[n % media.length]!;
    const tracks = [
      { kind: 'video', source: 'camera', loop: picture, slow: 0 },
      { kind: 'audio', source: 'microphone', loop: sound, slow: SLOW },
    ] as const;
    for (const [section, { kind, source, loop, slow }] of tracks.entries()) {
      const track = { roomId, kind, feedId, startedAt };
      const names = { participantId: person.id, sessionId: session.id, trackId: kind, mid: String(section) };
      await prisma.recordingSpan.create({ data: { ...track, ...names, source, muted: false } });
      const capture = { ...track, nodeId: NODE_ID, name: `${n}-${kind}`, section };
      let bytes = 0;
      for (let chunk = 0; chunk < LOOPS; chunk += 1) {
        const part = repeated(loop, chunk, LOOP_SECONDS * 1000, slow);
        await store.put(captureChunkKey(capture, chunk), part);
        bytes += part.length;
      }
      await saveCapture(database.sql, { ...capture, bytes, chunks: LOOPS, closed: true });
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

/** How much later the picture of the first person is than the sound in the last minute, in milliseconds. */
async function offsetOf({ database, store }: Bench, id: string, crop: string): Promise<number> {
  const { files: stored } = await database.prisma.recording.findUniqueOrThrow({ where: { id } });
  const files = stored as unknown as StoredRecordingFile[];
  const [first] = files;
  const own = files.filter(({ participantId }) => participantId === first?.participantId);
  const mediaOfKind = (kind: 'audio' | 'video') =>
    own
      .filter(({ contentType }) => own.length === 1 || contentType.startsWith(kind))
      .map((file) => ({ path: store.pathOf(recordingFileKey(id, file)), startMs: file.startMs }));
  const offsets = offsetsOf(mediaOfKind('video'), mediaOfKind('audio'), crop, SECONDS - LOOP_SECONDS);
  return medianOffset(offsets);
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
