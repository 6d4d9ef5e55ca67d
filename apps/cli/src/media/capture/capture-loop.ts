import type { Database } from '@callplane/db';
import type { MediaNode } from '@callplane/media';
import { pause } from '@callplane/runtime';
import { openStore } from '@callplane/store';
import type { CliConfig } from '../../config.js';
import { UsageError } from '../../failure.js';
import { Captures } from './captures.js';

/** The pause between two passes, in milliseconds: the shorter one while a room that is wanted is about to open. */
const EVERY_MS = 1000;
const SOON_MS = 250;

export interface CaptureLoop {
  nodeId: string;
  janus: MediaNode;
  database: Database;
  config: CliConfig;
  nowMs: () => number;
  say: (step: string, text: string) => void;
}

/**
 * Records until `signal` aborts. The media server continues to record, and the next agent ships its files.
 * @returns at once if the settings name no folders
 * @throws UsageError if a setting is missing
 */
export async function captureUntil(signal: AbortSignal, loop: CaptureLoop): Promise<void> {
  const { nodeId, janus, database, config, nowMs, say } = loop;
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
  let last = '';
  while (!signal.aborted) {
    let state = `${nodeId} records into ${folder}.`;
    let soon = false;
    try {
      const { absent, isDiskFull } = await captures.pass();
      soon = absent > 0;
      if (isDiskFull) state = `${folder} is almost full. ${nodeId} records nothing until it has room.`;
    } catch (error) {
      state = `${nodeId} cannot record at present: ${(error as Error).message}. Trying again.`;
    }
    if (state !== last) say('capture', state);
    last = state;
    await pause(soon ? SOON_MS : EVERY_MS, signal);
  }
}
