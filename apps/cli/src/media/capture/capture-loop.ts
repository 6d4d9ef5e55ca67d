import type { Database } from '@callplane/db';
import type { MediaNode } from '@callplane/media';
import { pause, type Metrics } from '@callplane/runtime';
import { openStore } from '@callplane/store';
import type { CliConfig } from '../../config.js';
import { UsageError } from '../../failure.js';
import { Captures, type CaptureFigures } from './captures.js';

/** The pause between two passes, in milliseconds: the shorter one while a room that is wanted is about to open. */
const EVERY_MS = 1000;
const SOON_MS = 250;

export interface CaptureLoop {
  nodeId: string;
  janus: MediaNode;
  database: Database;
  config: CliConfig;
  nowMs: () => number;
  metrics: Metrics;
  say: (step: string, text: string) => void;
}

/**
 * Records until `signal` aborts. The media server continues to record, and the next agent ships its files.
 * @returns at once if the settings name no folders
 * @throws UsageError if a setting is missing
 */
export async function captureUntil(signal: AbortSignal, loop: CaptureLoop): Promise<void> {
  const { nodeId, janus, database, config, nowMs, metrics, say } = loop;
  const { MEDIA_CAPTURE_FOLDER: folder } = config;
  if (folder === undefined) return;
  const store = await openStore(config);
  if (store === null || config.MEDIA_ADMIN_KEY === undefined) {
    throw new UsageError('MEDIA_CAPTURE_FOLDER needs MEDIA_ADMIN_KEY, and RECORDINGS_S3_BUCKET or RECORDINGS_FOLDER.');
  }
  const captures = new Captures({
    db: database.sql,
    record: (roomId, how) => janus.record(roomId, how),
    store,
    nodeId,
    folder,
    nowMs,
  });
  addCaptureMetrics(metrics, captures.figures, nowMs);
  let last = '';
  while (!signal.aborted) {
    let state = `${nodeId} records into ${folder}.`;
    let soon = false;
    try {
      const { absent, isDiskFull, failure } = await captures.pass();
      soon = absent > 0;
      if (failure !== null)
        state = `${nodeId} cannot ship some recordings at present: ${failure.message}. Trying again.`;
      if (isDiskFull) state = `${folder} is almost full. ${nodeId} records nothing until it has room.`;
    } catch (error) {
      state = `${nodeId} cannot record at present: ${(error as Error).message}. Trying again.`;
    }
    if (state !== last) say('capture', state);
    last = state;
    await pause(soon ? SOON_MS : EVERY_MS, signal);
  }
}

function addCaptureMetrics(metrics: Metrics, figures: CaptureFigures, nowMs: () => number): void {
  const shipped = 'Bytes of recordings that the store has taken.';
  metrics.totals(
    { name: 'callplane_capture_shipped_bytes_total', help: shipped, label: 'kind' },
    () => figures.shippedBytes,
  );
  const failures = 'Passes that did not count, and rooms that failed in a pass.';
  metrics.totals({ name: 'callplane_capture_failures_total', help: failures, label: 'what' }, () => figures.failures);
  const behind = 'Time since the store had all of the file that it lacks the longest; 0 if it lacks none.';
  metrics.gauge({ name: 'callplane_capture_behind_seconds', help: behind }, () =>
    figures.behindSinceMs === null ? 0 : Math.max(0, nowMs() - figures.behindSinceMs) / 1000,
  );
  const free = 'Free room on the disk of MEDIA_CAPTURE_FOLDER, in bytes.';
  metrics.gauge({ name: 'callplane_capture_free_bytes', help: free }, () => figures.freeBytes);
}
