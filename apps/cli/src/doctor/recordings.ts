import { randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import type { RecordingFacts } from '@callplane/db';
import type { ObjectStore } from '@callplane/store';
import { failure, ok, warning, type Finding } from './finding.js';

/** @param isRunning whether a recorder is connected to PostgreSQL */
export async function checkRecordings(
  store: ObjectStore | null,
  { hasRecorder, recording, silent }: RecordingFacts,
  isRunning: boolean,
): Promise<Finding[]> {
  if (store === null && !isRunning) return [ok('recordings', 'are off: no store is set')];
  const captures = `${recording} media ${recording === 1 ? 'server records' : 'servers record'}`;
  const agents = 'Run "rtc media agent" beside each Janus with MEDIA_CAPTURE_FOLDER and the store; its log says more.';
  const start = 'Start a recorder with the same store; without ffmpeg or a store, its log says so.';
  const lacks = 'Install ffmpeg beside the recorder, give it the store, and restart it; its log says what it lacks.';
  return [
    await checkStore(store),
    hasRecorder
      ? ok('recordings recorder', 'works, with ffmpeg')
      : failure(
          'recordings recorder',
          isRunning ? 'runs and lacks something' : 'none works',
          isRunning ? lacks : start,
        ),
    recording === 0 || silent > 0
      ? warning('recordings agents', silent > 0 ? `${captures}, ${silent} no longer` : captures, agents)
      : ok('recordings agents', captures),
  ];
}

/** Writes, reads and deletes a small object. */
async function checkStore(store: ObjectStore | null): Promise<Finding> {
  const check = 'recordings store';
  if (store === null) {
    return failure(check, 'is not set', 'Set RECORDINGS_S3_BUCKET or RECORDINGS_FOLDER, as for the recorder.');
  }
  const folder = `doctor/${randomUUID()}/`;
  const text = Buffer.from('written by rtc doctor');
  let step = 'written';
  try {
    await store.put(`${folder}object`, text);
    step = 'read';
    if (!text.equals(await buffer(await store.read(`${folder}object`)))) throw new Error('it has other bytes');
    step = 'deleted';
    await store.removeAll(folder);
    return ok(check, 'writes, reads and deletes');
  } catch (error) {
    const advice =
      'Check RECORDINGS_*: address, bucket and keys of the store, and the rights that docs/recordings.md names.';
    return failure(check, `an object cannot be ${step}: ${(error as Error).message}`, advice);
  }
}
