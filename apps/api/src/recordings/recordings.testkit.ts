import { newId } from '@callplane/core';
import { takeSweep } from '@callplane/db';
import type { TestApi } from '../api.testkit.js';

/** Pretends that a recorder runs until the lease is over; it may be over already. */
export const recorderRuns = ({ database }: TestApi, leaseMs = 600_000) =>
  takeSweep(database.sql, { name: 'recorder longest durations', holder: 'test', leaseMs, finishedMsAgo: null });

/** Pretends that the agent of a media server has made a pass. */
export const mediaServerRecords = ({ database }: TestApi, secondsAgo = 0) =>
  database.sql.$executeRaw`
    INSERT INTO media_nodes (id, captured_at) VALUES ('m1', now() - ${secondsAgo}::int * interval '1 second')
    ON CONFLICT (id) DO UPDATE SET captured_at = excluded.captured_at`;

export const makeRecordable = (api: TestApi) => Promise.all([recorderRuns(api), mediaServerRecords(api)]);

/** A recording with a file, which is completed or still runs. */
export async function recording(
  api: TestApi,
  roomId: string,
  status: 'completed' | 'recording' = 'completed',
): Promise<{ recordingId: string; fileId: string }> {
  const [recordingId, fileId] = [newId('recording'), newId('recordingFile')];
  const file = {
    id: fileId,
    kind: 'track',
    contentType: 'audio/webm',
    bytes: 1,
    sha256: '',
    startMs: 0,
    durationMs: 1,
  };
  const unknown = { participantId: null, trackId: null, source: null, width: null, height: null, madeFrom: '' };
  const at = new Date();
  const ended = status === 'completed' ? at : null;
  await api.database.prisma.recording.create({
    data: {
      ...{ id: recordingId, environmentId: api.tenant.environmentId, roomId, mode: 'tracks', audioOnly: false },
      ...{ metadata: {}, maxDurationSeconds: 60, status, files: [{ ...file, ...unknown }] },
      ...{ startedAt: at, endedAt: ended, completedAt: ended },
    },
  });
  return { recordingId, fileId };
}
