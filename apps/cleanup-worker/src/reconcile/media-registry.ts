import { removeSilentNodes } from '@callplane/db';
import type { Deps } from '../deps.js';

/** Removes registered media servers that are gone for good, and connects to new ones. */
export async function followRegistry({ database, media, logger }: Pick<Deps, 'database' | 'media' | 'logger'>) {
  for (const nodeId of await removeSilentNodes(database.sql)) {
    logger.warn('silent media server removed', { mediaNodeId: nodeId });
  }
  await media.refresh();
}
