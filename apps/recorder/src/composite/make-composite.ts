import { createHash } from 'node:crypto';
import { createWriteStream, existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { recordingFileKey, recordingFileName, recordingPartsPrefix, type StoredRecordingFile } from '@callplane/core';
import { findRecordingOf, readAttendees, saveRecordingFile, type RecordingSpan } from '@callplane/db';
import { ffmpeg } from '../captures/ffmpeg.js';
import { describeFile, requireScratch, type Making } from '../operations/make-tracks.js';
import { attendanceOf, extentOf, talksOf } from './attendance.js';
import { labelsOf } from './labels.js';
import { HEIGHT, WIDTH } from './layouts.js';
import { BYTES_PER_MINUTE, joinArguments, sceneArguments, type Source } from './scene-arguments.js';
import { planScenes, type Scene } from './scenes.js';
import { speakersOf, type Interval, type Talk } from './speakers.js';
import { findSpeech } from './speech.js';

const MINUTE_MS = 60_000;
const LABELS = 'labels.ass';

/**
 * Makes the composite of the stored tracks, scene by scene. Each scene is a checkpoint: an object of the store, whose name
 * says what it was made of.
 * @param progress from which value to which it goes
 */
export async function makeComposite(
  making: Making,
  spans: readonly RecordingSpan[],
  progress: { from: number; to: number },
): Promise<void> {
  const { deps, claim, attempt, recording, scratch } = making;
  const tracks = recording.files;
  const attendance = attendanceOf(recording, await readAttendees(deps.database.sql, recording), spans, tracks);
  const { durationMs, layout, pictures } = attendance;
  await requireScratch(scratch, (BYTES_PER_MINUTE * durationMs) / MINUTE_MS);
  const needsSpeakers = layout === 'speaker' || pictures.some(({ isScreen }) => isScreen);
  const speakers = needsSpeakers ? speakersOf(await findTalks(making, spans)) : [];
  const scenes = planScenes({ ...attendance, speakers });
  const list: string[] = [];
  for (const [index, scene] of scenes.entries()) {
    attempt.signal.throwIfAborted();
    if ((await findRecordingOf(deps.database.sql, claim))?.isDeleted !== false) return;
    list.push(`file '${await makeScene(making, scene)}'\nduration ${(scene.toMs - scene.fromMs) / 1000}\n`);
    const over = tracks.filter((track) => extentOf(track).toMs <= scene.toMs);
    await Promise.all(over.map((track) => rm(join(scratch, recordingFileName(track)), { force: true })));
    const share = ((progress.to - progress.from) * (index + 1)) / (scenes.length + 1);
    await saveRecordingFile(deps.database, claim, null, Math.floor(progress.from + share));
  }
  await writeFile(join(scratch, 'list.txt'), list.join(''));
  const path = join(scratch, 'composite');
  await ffmpeg([...joinArguments('list.txt', deps.compositeFormat), path], { signal: attempt.signal, cwd: scratch });
  const file = await describeFile(path, {
    ...{ kind: 'composite', participantId: recording.participantId, trackId: null, source: null, madeFrom: '' },
    ...{ contentType: `${layout === null ? 'audio' : 'video'}/${deps.compositeFormat}`, startMs: 0, durationMs },
    ...(layout === null ? { width: null, height: null } : { width: WIDTH, height: HEIGHT }),
  });
  await deps.store.put(recordingFileKey(recording.id, file), { path });
  await saveRecordingFile(deps.database, claim, file, progress.to, { replacesOthers: true });
  attempt.note({ scenes: scenes.length });
}

async function findTalks(making: Making, spans: readonly RecordingSpan[]): Promise<Talk[]> {
  const talks: Talk[] = [];
  for (const track of making.recording.files.filter(({ source }) => source === 'microphone')) {
    const path = join(making.scratch, await fetchPart(making, recordingFileName(track), track.bytes));
    const speech = await findSpeech(path, track.durationMs, making.attempt.signal);
    talks.push(...talksOf(making.recording, spans, track, speech));
    await rm(path);
  }
  return talks;
}

/** @returns the name of its file in the scratch folder */
async function makeScene(making: Making, scene: Scene): Promise<string> {
  const { deps, attempt, recording, scratch } = making;
  const isIn = ({ fromMs, toMs }: Interval): boolean => fromMs < scene.toMs && scene.fromMs < toMs;
  const tracks = recording.files.filter((track) => isIn(extentOf(track)));
  const shown = new Set(scene.tiles.map(({ fileId }) => fileId));
  const pictures = tracks.filter(({ id }) => shown.has(id));
  const sounds = tracks.filter(({ width }) => width === null);
  const sourceOf = (track: StoredRecordingFile): Source => ({ path: recordingFileName(track), ...extentOf(track) });
  const labels = labelsOf(scene.tiles);
  const args = sceneArguments(
    scene,
    new Map(pictures.map((track) => [track.id, sourceOf(track)])),
    sounds.map(sourceOf),
    {
      ...{ format: deps.compositeFormat, labels: LABELS, hasPicture: recording.layout !== null },
    },
  );
  const name = `${createHash('sha256')
    .update(JSON.stringify([args, labels]))
    .digest('hex')}.mkv`;
  const key = recordingPartsPrefix(recording.id) + name;
  const stored = await deps.store.size(key);
  if (stored !== null) return fetchPart(making, name, stored);
  for (const track of [...pictures, ...sounds]) await fetchPart(making, recordingFileName(track), track.bytes);
  await writeFile(join(scratch, LABELS), labels);
  await ffmpeg([...args, name], { signal: attempt.signal, cwd: scratch });
  await deps.store.put(key, { path: join(scratch, name) });
  return name;
}

/** Copies a part of the composite into the scratch folder, unless it is there. */
async function fetchPart({ deps, attempt, recording, scratch }: Making, name: string, bytes: number): Promise<string> {
  const path = join(scratch, name);
  if (existsSync(path)) return name;
  await requireScratch(scratch, bytes);
  const source = await deps.store.read(recordingPartsPrefix(recording.id) + name);
  await pipeline(source, createWriteStream(path), { signal: attempt.signal });
  return name;
}
