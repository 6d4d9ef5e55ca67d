import { listMediaNodes, type Database, type MediaNodeRow } from '@callplane/db';
import { UsageError } from '../failure.js';
import { quoted } from '../output.js';

/** @throws UsageError if no media server has this name */
export async function serverOf(db: Database['sql'], nodeId: string): Promise<MediaNodeRow> {
  const node = (await listMediaNodes(db)).find(({ id }) => id === nodeId);
  if (node === undefined) {
    throw new UsageError(`Media server ${quoted(nodeId)} not found. "rtc media list" lists media servers.`);
  }
  return node;
}
