import { isForwarded } from '@callplane/core';
import { closeDueForwards, deleteForward, knownForwards, type RoomOnNode } from '@callplane/db';
import type { MediaNode } from '@callplane/media';
import type { Deps } from '../deps.js';
import { endForward } from '../media/media-clean-up.js';

type ForwardDeps = Pick<Deps, 'database' | 'media' | 'logger' | 'outages'>;

/** More than the ports of a few media servers. A forward stays until both of its servers have answered. */
const CLOSING_MAX = 5000;
const AT_ONCE_MAX = 16;

/** Closes the forwards that no gateway wants any more, and the ones whose feed has ended. */
export async function closeForwards(deps: ForwardDeps): Promise<void> {
  const mayCount = deps.outages?.isSettled !== false;
  const closing = await closeDueForwards(deps.database.sql, mayCount, CLOSING_MAX);
  const waiting = closing.values();
  let closed = 0;
  const work = async (): Promise<void> => {
    for (const forward of waiting) {
      if (!(await endForward(deps, forward))) continue;
      await deleteForward(deps.database.sql, forward.name);
      closed += 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE_MAX }, work));
  if (closing.length > 0) deps.logger.info('forwards closed', { closed, left: closing.length - closed });
}

/**
 * Removes feeds that a media server receives from another one without a row: a gateway died while it opened them, or a
 * server has carried out an old request. Each has to be found by two passes in a row.
 */
export class StrayForwards {
  readonly #seen = new Map<string, Set<string>>();

  constructor(private readonly deps: Pick<Deps, 'database' | 'logger'>) {}

  /** @param rooms the rooms on the node that the database knows */
  async check(node: MediaNode, rooms: Iterable<RoomOnNode>): Promise<void> {
    const before = this.#seen.get(node.id) ?? new Set();
    const seen = new Set<string>();
    this.#seen.set(node.id, seen);
    for (const { roomId, furtherNodeIds } of rooms) {
      if (furtherNodeIds.length === 0) continue;
      const names = (await node.listFeeds(roomId)).filter(isForwarded);
      const known = await knownForwards(this.deps.database.sql, names);
      for (const name of names) {
        if (known.has(name)) continue;
        if (!before.has(name)) seen.add(name);
        else if ((await node.forwards.stopReceiving(roomId, name)) === 'removed') {
          this.deps.logger.warn('stray forward removed', { mediaNodeId: node.id, roomId, feedId: name });
        }
      }
    }
  }
}
