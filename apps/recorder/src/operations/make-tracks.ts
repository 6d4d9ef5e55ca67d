import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import {
  captureChunkKey,
  newId,
  recordingFileKey,
  recordingFileName,
  recordingPartsPrefix,
  type RecordingGap,
  type StoredRecordingFile,
} from '@callplane/core';
import { saveRecordingFile, type ClaimedOperation, type RecordingToProcess, type StoredCapture } from '@callplane/db';
import type { Attempt } from '@callplane/operations';
import type { ObjectStore } from '@callplane/store';
import { convertCapture } from '../captures/convert-capture.js';
import { addIndex } from '../captures/ffmpeg.js';
import type { Deps } from '../deps.js';
import type { PlannedPart } from './parts.js';

/** A capture, a file of it, and the same with an index. */
const SCRATCH_FACTOR = 3;

export interface Making {
  deps: Deps;
  claim: ClaimedOperation;
  attempt: Attempt;
  recording: RecordingToProcess;
  /** A folder of this attempt. */
  scratch: string;
}

/**
 * Makes a file of each part of a capture, each with a checkpoint.
 * @param made the files of earlier attempts
 * @returns media of the capture that is in no file
 */
export async function makeTracks(
  { deps, claim, attempt: { signal }, recording, scratch }: Making,
  capture: StoredCapture,
  parts: readonly PlannedPart[],
  made: ReadonlySet<string>,
): Promise<RecordingGap | null> {
  const name = (part: PlannedPart) => `${capture.nodeId}/${capture.name}/${part.track.trackId}/${part.fromMs}`;
  const missing = parts.filter((part) => !made.has(name(part)));
  if (missing.length === 0) return null;
  await requireScratch(scratch, SCRATCH_FACTOR * capture.bytes);
  const raw = join(scratch, 'capture.mjr');
  await download(deps.store, capture, raw, signal);
  const pathOf = (index: number, kind: string) => join(scratch, `${index}.${kind}.webm`);
  const wanted = missing.map(({ fromMs, toMs }, index) => ({ fromMs, toMs, path: pathOf(index, 'plain') }));
  const startedMs = capture.startedAt.getTime() - recording.startedAt.getTime();
  const conversion = await convertCapture(raw, startedMs, wanted);
  await rm(raw);
  if (conversion.outcome === 'codec_unsupported') {
    const startMs = Math.max(0, startedMs);
    const endMs = capture.shippedAt.getTime() - recording.startedAt.getTime();
    return { startMs, durationMs: Math.max(0, endMs - startMs), reason: 'codec_unsupported' };
  }
  for (const [index, converted] of conversion.parts.entries()) {
    const part = missing[index];
    if (converted === null || part === undefined) continue;
    signal.throwIfAborted();
    const path = pathOf(index, 'indexed');
    await addIndex(pathOf(index, 'plain'), path, signal);
    await rm(pathOf(index, 'plain'));
    const { size, ...extent } = converted;
    const file = await describeFile(path, {
      ...{ kind: 'track', ...part.track, ...extent, madeFrom: name(part) },
      ...(size === null
        ? { contentType: 'audio/webm', width: null, height: null }
        : { contentType: 'video/webm', ...size }),
    });
    const isPart = recording.mode === 'composite';
    const key = isPart
      ? recordingPartsPrefix(recording.id) + recordingFileName(file)
      : recordingFileKey(recording.id, file);
    await deps.store.put(key, { path });
    await rm(path);
    await saveRecordingFile(deps.database, claim, file, recording.progress);
  }
  return null;
}

/** Fails before the disk is full. */
export async function requireScratch(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < bytes) throw new Error(`${folder} has no room for ${bytes} bytes`);
}

/** Joins the chunks of a capture. */
async function download(store: ObjectStore, capture: StoredCapture, path: string, signal: AbortSignal): Promise<void> {
  const chunks = async function* () {
    for (let chunk = 0; chunk < capture.chunks; chunk += 1) {
      yield* (await store.read(captureChunkKey(capture, chunk))) as AsyncIterable<Buffer>;
    }
  };
  await pipeline(chunks, createWriteStream(path), { signal });
}

export async function describeFile(
  path: string,
  about: Omit<StoredRecordingFile, 'id' | 'bytes' | 'sha256'>,
): Promise<StoredRecordingFile> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { id: newId('recordingFile'), ...about, bytes, sha256: hash.digest('hex') };
}
