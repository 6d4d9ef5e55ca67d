import { ID_PREFIXES } from '@callplane/core';
import { recordNodeState, roomsStatus, type RoomOnNode } from '@callplane/db';
import { MediaError, type MediaNode, type MediaRoom } from '@callplane/media';
import type { Deps } from '../deps.js';

type ReconcileDeps = Pick<Deps, 'database' | 'media' | 'logger'>;

/** How long a media server may take to be reached before it is called down, in milliseconds. */
const REACH_WITHIN_MS = 1000;

/** Why a room on a media server is nobody's. */
type OrphanReason = 'ended' | 'unknown' | 'placed elsewhere';

/**
 * Compares media servers with the database: notes which of them answer, and destroys rooms that should not be there,
 * such as those of a server that was away when they ended. Keeps what it has found once, because what looks like an
 * orphan may be a room that is just moving: that takes two passes.
 */
export class MediaOrphans {
  readonly #deps: ReconcileDeps;
  readonly #suspects = new Map<string, Set<string>>();

  constructor(deps: ReconcileDeps) {
    this.#deps = deps;
  }

  /** One that is slow or frozen does not hold up the others. */
  async pass(): Promise<void> {
    const results = await Promise.allSettled(this.#deps.media.all().map((node) => this.#look(node)));
    const failed = results.filter((result) => result.status === 'rejected');
    if (failed.length > 0) throw failed[0]?.reason;
  }

  async #look(node: MediaNode): Promise<void> {
    // A worker that has just started is still connecting: that must not make a server look down that is not.
    await node.untilUp(REACH_WITHIN_MS).catch(() => undefined);
    const { state } = node;
    if (await recordNodeState(this.#deps.database.hot, node.id, state)) {
      this.#deps.logger[state === 'up' ? 'info' : 'error']('media node state', { mediaNodeId: node.id, state });
    }
    if (state === 'down') return;
    try {
      await this.#destroyOrphans(node);
    } catch (error) {
      if (!(error instanceof MediaError)) throw error;
      this.#deps.logger.warn('media node not compared', { mediaNodeId: node.id, error });
    }
  }

  async #destroyOrphans(node: MediaNode): Promise<void> {
    const before = this.#suspects.get(node.id) ?? new Set();
    const suspects = new Set<string>();
    this.#suspects.set(node.id, suspects);
    // Rooms that are none of ours by their name are somebody else's.
    const rooms = (await node.listRooms()).filter(({ roomId }) => roomId.startsWith(`${ID_PREFIXES.room}_`));
    const known = await this.#statusOf(rooms);
    for (const room of rooms) {
      const reason = orphaned(node, known.get(room.roomId));
      if (reason === null) continue;
      if (reason === 'ended' || before.has(room.roomId)) await this.#destroy(node, room);
      else suspects.add(room.roomId);
    }
  }

  async #destroy(node: MediaNode, room: MediaRoom): Promise<void> {
    // Asked again, because it may have come back here while the others were dealt with.
    const reason = orphaned(node, (await this.#statusOf([room])).get(room.roomId));
    if (reason === null || (await node.destroyRoom(room.roomId)) === 'absent') return;
    this.#deps.logger.warn('orphaned media room destroyed', {
      mediaNodeId: node.id,
      roomId: room.roomId,
      reason,
      feeds: room.feeds,
    });
  }

  #statusOf(rooms: readonly MediaRoom[]): Promise<Map<string, RoomOnNode>> {
    return roomsStatus(
      this.#deps.database.hot,
      rooms.map(({ roomId }) => roomId),
    );
  }
}

/** A room that is just ending is left to its clean-up. */
function orphaned(node: MediaNode, room: RoomOnNode | undefined): OrphanReason | null {
  if (room === undefined) return 'unknown';
  if (room.status === 'ended') return 'ended';
  return room.mediaNodeId === node.id ? null : 'placed elsewhere';
}
