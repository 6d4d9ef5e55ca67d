import { existsSync, readdirSync } from 'node:fs';
import { captureChunkKey } from '@callplane/core';
import type { Database } from '@callplane/db';
import { FolderStore } from '@callplane/store';
import type { Fleet } from '../fleet/fleet.js';
import { until } from './media-load.js';

/** Agents delete the last files in the pass after the next one. */
const SHIPPED_WITHIN_MS = 30_000;

/** Media servers that record although nobody wants it, and failed recordings without their raw parts. */
export async function problemsOfRecordings({ prisma }: Database, { media, store }: Fleet): Promise<string[]> {
  const left = () => media.captureFolders.flatMap((folder) => readdirSync(folder).map((room) => `${folder}/${room}`));
  await until(() => left().length === 0, SHIPPED_WITHIN_MS);
  const failed = await prisma.recording.findMany({ where: { status: 'failed' }, select: { roomId: true } });
  const captures = await prisma.recordingCapture.findMany({
    where: { roomId: { in: failed.map((each) => each.roomId) } },
  });
  const objects = new FolderStore(store.folder);
  const chunks = captures.flatMap((each) => Array.from({ length: each.chunks }, (_, n) => captureChunkKey(each, n)));
  return [
    ...left().map((folder) => `${folder} is recorded although all recordings have ended`),
    ...chunks
      .filter((name) => !existsSync(objects.pathOf(name)))
      .map((name) => `${name} of a failed recording is gone`),
  ];
}
