import { isForwarded } from '@callplane/core';
import { anyForwards, closeDueForwards, deleteForward, knownForwards, type RoomOnNode } from '@callplane/db';
import type { MediaNode } from '@callplane/media';
import type { Deps } from '../deps.js';
import { endForward } from '../media/media-clean-up.js';

type ForwardDeps = Pick<Deps, 'database' | 'media' | 'logger' | 'outages'>;

/** More than the ports of a few media servers. A forward stays until both of its servers have answered. */
const CLOSING_MAX = 5000;
const AT_ONCE_MAX = 16;

/**
 * The forwards between media servers, as the database and the servers know them. One that has no row is removed by the
 * second pass in a row that finds it: a gateway died while it opened the forward, or a server has carried out an old
 * request.
 */
export class Forwards {
  /** Feeds without a row that the last pass has found, by media server. */
  readonly #strays = new Map<string, ReadonlySet<string>>();
  /** The media servers with rooms that may use several, according to the last pass. */
  readonly #spread = new Set<string>();
  /** Whether there were forwards after the last `close`. */
  #areLeft = true;

  constructor(private readonly deps: ForwardDeps) {}

  /** Whether there may be forwards. False at most for some seconds after the first room has spread. */
  get arePossible(): boolean {
    return this.#areLeft || this.deps.media.all().some(({ id }) => this.#spread.has(id));
  }

  /** Closes the ones that no gateway wants any more, and the ones whose feed has ended. */
  async close(): Promise<void> {
    const mayCount = this.deps.outages?.isSettled !== false;
    const closing = await closeDueForwards(this.deps.database.sql, mayCount, CLOSING_MAX);
    const waiting = closing.values();
    let closed = 0;
    const work = async (): Promise<void> => {
      for (const forward of waiting) {
        if (!(await endForward(this.deps, forward))) continue;
        await deleteForward(this.deps.database.sql, forward.name);
        closed += 1;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE_MAX }, work));
    this.#areLeft = await anyForwards(this.deps.database.sql);
    if (closing.length > 0) this.deps.logger.info('forwards closed', { closed, left: closing.length - closed });
  }

  /** @param rooms the rooms on the node that the database knows */
  async check(node: MediaNode, rooms: Iterable<RoomOnNode>): Promise<void> {
    const spread = [...rooms].filter(({ furtherNodeIds }) => furtherNodeIds.length > 0);
    if (spread.length === 0) this.#spread.delete(node.id);
    else this.#spread.add(node.id);
    const before = this.#strays.get(node.id) ?? new Set();
    const seen = new Set<string>();
    this.#strays.set(node.id, seen);
    for (const { roomId } of spread) {
      for (const { name, stop } of await this.#withoutRow(node, roomId)) {
        if (!before.has(name)) seen.add(name);
        else if ((await stop()) === 'removed') {
          this.deps.logger.warn('stray forward removed', { mediaNodeId: node.id, roomId, feedId: name });
        }
      }
    }
  }

  /** Forwards without a row that a media server receives or sends in a room. */
  async #withoutRow(node: MediaNode, roomId: string) {
    const feedIds = await node.listFeeds(roomId);
    const found = feedIds
      .filter(isForwarded)
      .map((name) => ({ name, stop: () => node.forwards.stopReceiving(roomId, name) }));
    for (const feedId of feedIds.filter((one) => !isForwarded(one))) {
      const names = await node.forwards.sent(roomId, feedId);
      found.push(...names.map((name) => ({ name, stop: () => node.forwards.stopSending(roomId, feedId, name) })));
    }
    const known = await knownForwards(
      this.deps.database.sql,
      found.map(({ name }) => name),
    );
    return found.filter(({ name }) => !known.has(name));
  }
}
