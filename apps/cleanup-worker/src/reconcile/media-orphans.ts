import { ID_PREFIXES } from '@callplane/core';
import { recordNodeState, roomsStatus, type RoomOnNode } from '@callplane/db';
import { MediaError, type MediaNode, type MediaRoom } from '@callplane/media';
import type { Deps } from '../deps.js';
import { Forwards } from './forwards.js';

type ReconcileDeps = Pick<Deps, 'database' | 'media' | 'logger'>;

/** How long a media server may take to connect before it counts as down, in milliseconds. */
const REACH_WITHIN_MS = 1000;

type OrphanReason = 'ended' | 'unknown' | 'placed elsewhere';

/**
 * Compares media servers with the database. Records which servers answer, and destroys orphaned rooms, such as rooms
 * that ended while their server was unreachable. A room that the database calls ended is destroyed at once. Any other
 * orphan has to be found by two passes in a row, because it may be a room that is just moving to this server.
 */
export class MediaOrphans {
  readonly #unproven = new Map<string, Set<string>>();

  constructor(
    private readonly deps: ReconcileDeps,
    private readonly forwards = new Forwards(deps),
  ) {}

  /** Compares all media servers concurrently, so that a slow or frozen one does not delay the others. */
  async pass(): Promise<void> {
    const results = await Promise.allSettled(this.deps.media.all().map((node) => this.#check(node)));
    const failed = results.filter((result) => result.status === 'rejected');
    if (failed.length > 0) throw failed[0]?.reason;
  }

  async #check(node: MediaNode): Promise<void> {
    // A worker that has just started is still connecting, and must not record a healthy server as down.
    await node.untilUp(REACH_WITHIN_MS).catch(() => undefined);
    const { state, version, isOutdated } = node;
    const isConfigured = this.deps.media.isConfigured(node.id);
    if (await recordNodeState(this.deps.database.sql, node.id, state, { version, isConfigured })) {
      const level = state === 'down' ? 'error' : isOutdated ? 'warn' : 'info';
      this.deps.logger[level]('media node state', { mediaNodeId: node.id, state, version, outdated: isOutdated });
    }
    if (state === 'down') return;
    try {
      await this.#destroyOrphans(node);
    } catch (error) {
      if (!(error instanceof MediaError)) throw error;
      this.deps.logger.warn('media node comparison failed', { mediaNodeId: node.id, error });
    }
  }

  async #destroyOrphans(node: MediaNode): Promise<void> {
    const before = this.#unproven.get(node.id) ?? new Set();
    const unproven = new Set<string>();
    this.#unproven.set(node.id, unproven);
    // Rooms without the prefix of Callplane belong to other applications on the same server.
    const rooms = (await node.listRooms()).filter(({ roomId }) => roomId.startsWith(`${ID_PREFIXES.room}_`));
    const known = await this.#statusOf(rooms);
    for (const room of rooms) {
      const reason = orphaned(node, known.get(room.roomId));
      if (reason === null) continue;
      if (reason === 'ended' || before.has(room.roomId)) await this.#destroy(node, room);
      else unproven.add(room.roomId);
    }
    await this.forwards.check(node, known.values());
  }

  async #destroy(node: MediaNode, room: MediaRoom): Promise<void> {
    // Checks again, because the room may have moved back here while the pass destroyed others.
    const reason = orphaned(node, (await this.#statusOf([room])).get(room.roomId));
    if (reason === null || (await node.destroyRoom(room.roomId)) === 'absent') return;
    this.deps.logger.warn('orphaned media room destroyed', {
      mediaNodeId: node.id,
      roomId: room.roomId,
      reason,
      feeds: room.feeds,
    });
  }

  #statusOf(rooms: readonly MediaRoom[]): Promise<Map<string, RoomOnNode>> {
    return roomsStatus(
      this.deps.database.sql,
      rooms.map(({ roomId }) => roomId),
    );
  }
}

/** Returns why a room is an orphan, or null. A room with status `ending` is no orphan: its operation cleans it up. */
function orphaned(node: MediaNode, room: RoomOnNode | undefined): OrphanReason | null {
  if (room === undefined) return 'unknown';
  if (room.status === 'ended') return 'ended';
  return room.mediaNodeId === node.id || room.furtherNodeIds.includes(node.id) ? null : 'placed elsewhere';
}
